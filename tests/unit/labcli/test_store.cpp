// The lab's database: what was kept is there after it was closed, a turn is kept whole, history tells what
// happened.
#include <QTest>

#include <future>
#include <stdexcept>
#include <thread>

#include "labcli/store/store.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::lab {

class TestStore : public QObject {
    Q_OBJECT

  private slots:
    void init() { folder_ = std::make_unique<test::TemporaryFolder>(); }

    void records_are_there_again() {
        Invitation invitation;
        invitation.id = 3;
        invitation.token_hash = sha256(Bytes{1});
        invitation.uses_left = 7;
        invitation.expires_at_ms = 123;
        invitation.trusted = true;
        invitation.created_at_ms = 111;
        Volunteer volunteer;
        volunteer.id = 4;
        volunteer.public_key[0] = 9;
        volunteer.invitation = 3;
        volunteer.state = MemberState::pending;
        volunteer.agreed = 1;
        volunteer.disagreed = 2;
        volunteer.failed = 5;
        volunteer.credit_flops = uint64_t{1} << 60;
        volunteer.created_at_ms = 222;
        Computer computer;
        computer.id = 5;
        computer.volunteer = 4;
        computer.mark[1] = 8;
        computer.name = "Zoë's <PC>";
        computer.credential_hash = sha256(Bytes{2});
        computer.speed_flops = 77;
        computer.created_at_ms = 333;
        JobRecord job = a_job(6);
        {
            Store store = open();
            store.invitation(invitation);
            store.computer(computer);  // in one turn with its volunteer, whatever the order
            store.volunteer(volunteer);
            store.job(job);
            store.end_turn();
        }
        Store store = open();
        QCOMPARE(store.invitations().size(), size_t{1});
        const Invitation invitation_kept = store.invitations()[0];
        QVERIFY(invitation_kept.id == 3 && invitation_kept.token_hash == invitation.token_hash &&
                invitation_kept.uses_left == 7);
        QVERIFY(invitation_kept.expires_at_ms == 123 && invitation_kept.trusted && !invitation_kept.revoked);
        const Volunteer volunteer_kept = store.volunteers().at(0);
        QVERIFY(volunteer_kept.public_key == volunteer.public_key &&
                volunteer_kept.state == MemberState::pending);
        QVERIFY(volunteer_kept.agreed == 1 && volunteer_kept.disagreed == 2 && volunteer_kept.failed == 5);
        QCOMPARE(volunteer_kept.credit_flops, volunteer.credit_flops);
        const Computer computer_kept = store.computers().at(0);
        QVERIFY(computer_kept.mark == computer.mark &&
                computer_kept.credential_hash == computer.credential_hash);
        QCOMPARE(computer_kept.name, computer.name);
        QCOMPARE(std::tuple(invitation_kept.created_at_ms, volunteer_kept.created_at_ms,
                            computer_kept.created_at_ms),
                 std::tuple(uint64_t{111}, uint64_t{222}, uint64_t{333}));
        const JobRecord job_kept = store.jobs().at(0);
        QVERIFY(job_kept.choice.policy == Policy::redundant && job_kept.choice.replicas == 3);
        QCOMPARE(job_kept.specification, job.specification);
        QCOMPARE(store.last_numbers(), (LastNumbers{5, 6, 0}));
    }

    void assignments_are_there_by_number_and_by_job() {
        {
            Store store = open();
            store.job(a_job(1));
            for (AssignmentNumber number = 1; number <= 4; ++number)
                store.assignment_issued(an_assignment(number));
            Assignment committed = an_assignment(2);
            committed.state = AssignmentState::committed;
            committed.digests = {sha256(Bytes{1}), sha256(Bytes{2})};
            committed.compute_us = UINT64_MAX;  // as a contributor may claim
            store.assignment_changed(committed);
            Assignment convicted = an_assignment(3);
            convicted.state = AssignmentState::disagreed;
            convicted.reason = "element 3";
            store.assignment_changed(convicted);
            store.end_turn();
        }
        Store store = open();
        QCOMPARE(store.last_numbers().assignment, AssignmentNumber{4});
        QCOMPARE(store.open_assignments(1).size(), size_t{3});
        QCOMPARE(store.open_assignments(2).size(), size_t{0});
        const Assignment committed = *store.assignment(2);
        QVERIFY(committed.id == an_assignment(2).id && committed.key == an_assignment(2).key);
        QVERIFY(committed.state == AssignmentState::committed);
        QCOMPARE(committed.digests, (std::vector<Digest>{sha256(Bytes{1}), sha256(Bytes{2})}));
        QCOMPARE(committed.compute_us, uint64_t{UINT64_MAX});
        QVERIFY(!store.assignment(99));
        const auto lines = store.disagreements(7, 10);
        QCOMPARE(lines.size(), size_t{1});
        QVERIFY(lines[0].text.find("job 1, task 30: disagreed: element 3") != std::string::npos);
        QVERIFY(store.disagreements(8, 10).empty());
    }

    void an_acknowledgement_that_throws_ends_the_lab_and_not_the_process() {
        std::promise<std::string> fatal;
        {
            Store store(database(), [&](const std::string& reason) {
                fatal.set_value(reason);
                throw std::runtime_error("nobody listens");
            });
            std::atomic<bool> acknowledged = false;
            store.job(a_job(1));
            store.after_commit([] { throw std::runtime_error("a full mailbox"); });
            store.after_commit([&] { acknowledged = true; });
            store.end_turn();
            QCOMPARE(fatal.get_future().get(), std::string("a full mailbox"));
            QVERIFY(!acknowledged);
        }
        QCOMPARE(open().jobs().size(), size_t{1});
    }

    void a_wait_for_a_locked_database_goes_on_though_telling_of_it_throws() {
        { Store store = open(); }
        Database other(database());
        std::promise<void> told;
        std::thread holds([&, locked = std::make_unique<Transaction>(other)]() mutable {
            told.get_future().wait();
            locked.reset();
        });
        Database waits(database(), [&](const std::string&) {
            told.set_value();
            throw std::runtime_error("nobody listens");
        });
        waits.execute("DELETE FROM event");
        holds.join();
    }

    void a_turn_is_kept_whole_or_not_at_all() {
        std::promise<std::string> broken;
        {
            Store store(database(), [&](const std::string& reason) { broken.set_value(reason); });
            store.job(a_job(1));
            store.end_turn();
            store.job(a_job(2));
            store.assignment_issued(an_assignment(1));
            store.assignment_issued(an_assignment(1));  // the same number twice can't be kept
            std::atomic<bool> acknowledged = false;
            store.after_commit([&] { acknowledged = true; });
            store.end_turn();
            QVERIFY(!broken.get_future().get().empty());
            QVERIFY(!acknowledged);
        }
        Store store = open();
        QVERIFY(store.jobs().size() <= 1);
        QVERIFY(store.open_assignments(1).empty());
    }

    void what_is_acknowledged_is_on_disk() {
        Store store = open();
        std::promise<size_t> seen;
        store.job(a_job(1));
        store.after_commit(
            [&] { seen.set_value(Store(database(), [](const std::string&) {}).jobs().size()); });
        store.end_turn();
        QCOMPARE(seen.get_future().get(), size_t{1});
    }

    void a_merged_tile_is_synced_before_its_task_counts_as_accepted() {
        struct File final : Syncable {
            void sync() override { ++synced; }
            std::atomic<int> synced = 0;
        };
        const auto file = std::make_shared<File>();
        Store store = open();
        std::promise<int> synced;
        store.job(a_job(1));
        store.task_accepted(1, 10, file);
        store.task_accepted(1, 11, file);
        store.after_commit([&] { synced.set_value(file->synced); });
        store.end_turn();
        QCOMPARE(synced.get_future().get(), 1);
        QCOMPARE(store.accepted_tasks(1), (std::vector<TaskNumber>{10, 11}));
    }

    void a_tile_that_can_not_be_synced_is_not_accepted() {
        struct File final : Syncable {
            void sync() override { throw Error(ErrorKind::io, "expected to write, found the disk gone"); }
        };
        std::promise<std::string> broken;
        {
            Store store(database(), [&](const std::string& reason) { broken.set_value(reason); });
            store.task_accepted(1, 10, std::make_shared<File>());
            store.end_turn();
            QVERIFY(broken.get_future().get().find("the disk gone") != std::string::npos);
        }
        QVERIFY(open().accepted_tasks(1).empty());
    }

    void history_tells_who_got_what_and_what_came_of_it() {
        Store store = open();
        store.event(1, "submitted");
        store.assignment_issued(an_assignment(1));
        Assignment assignment = an_assignment(1);
        assignment.state = AssignmentState::committed;
        assignment.compute_us = 1'500'000;
        store.assignment_changed(assignment);
        assignment.state = AssignmentState::disagreed;
        assignment.reason = "wrong bits";
        store.assignment_changed(assignment);
        wait_for(store);
        std::string text;
        for (const HistoryLine& line : store.history(1, 100)) text += line.text + "\n";
        for (const char* part : {"submitted\n", "task 10: computer 7 got it\n",
                                 "committed a digest after 1.500 s", "disagreed: wrong bits"})
            QVERIFY2(text.find(part) != std::string::npos, text.c_str());
        QCOMPARE(store.history(1, 2).size(), size_t{2});
    }

    void the_end_of_an_assignment_is_known_before_it_is_on_disk() {
        Store store = open();
        store.assignment_issued(an_assignment(1));
        wait_for(store);
        Assignment assignment = an_assignment(1);
        assignment.digests = {sha256(Bytes{1})};
        assignment.state = AssignmentState::agreed;
        store.assignment_changed(assignment);
        QVERIFY(store.assignment(1)->state == AssignmentState::agreed);
        QCOMPARE(store.assignment(1)->digests, assignment.digests);
        wait_for(store);
        QVERIFY(store.assignment(1)->state == AssignmentState::agreed);
    }

    void what_a_computer_is_blamed_for_is_found_without_going_through_all_assignments() {
        { const Store store = open(); }
        Database raw(database());
        const std::string explain = "EXPLAIN QUERY PLAN " + Store::disagreements_query();
        Statement plan = raw.statement(explain.c_str());
        plan.bind(uint64_t{7}).bind(uint64_t{100});
        std::string text;
        while (plan.step()) text += plan.text(3) + "\n";
        QVERIFY2(text.find("USING INDEX assignment_blamed (computer=?)") != std::string::npos, text.c_str());
        QVERIFY2(text.find("TEMP B-TREE") == std::string::npos, text.c_str());
    }

    void a_deleted_job_leaves_nothing() {
        Store store = open();
        store.job(a_job(1));
        store.assignment_issued(an_assignment(1));
        store.task_accepted(1, 10, a_file());
        store.event(1, "submitted");
        store.delete_job(1);
        wait_for(store);
        QVERIFY(store.jobs().empty() && store.accepted_tasks(1).empty() && store.history(1, 10).empty() &&
                !store.assignment(1));
    }

    void a_forgotten_computer_is_gone_and_its_volunteer_stays() {
        Store store = open();
        Volunteer volunteer;
        volunteer.id = 1;
        Computer computer;
        computer.id = 2;
        computer.volunteer = 1;
        store.volunteer(volunteer);
        store.computer(computer);
        store.forget_computer(2);
        wait_for(store);
        QVERIFY(store.computers().empty());
        QCOMPARE(store.volunteers().size(), size_t{1});
    }

    void the_highest_numbers_outlive_what_had_them() {
        {
            Store store = open();
            Volunteer volunteer;
            volunteer.id = 1;
            Computer computer;
            computer.id = 5;
            computer.volunteer = 1;
            store.volunteer(volunteer);
            store.computer(computer);
            store.job(a_job(1));
            store.assignment_issued(an_assignment(3));
            store.end_turn();
            store.forget_computer(5);
            store.delete_job(1);
            store.end_turn();
        }
        QCOMPARE(open().last_numbers(), (LastNumbers{5, 1, 3}));
        {
            Store store = open();
            store.forget_computer(4);  // an older one doesn't lower them
            store.delete_job(0);
            store.end_turn();
        }
        QCOMPARE(open().last_numbers(), (LastNumbers{5, 1, 3}));
    }

    void numbers_that_only_assignments_of_an_older_database_name_are_not_given_again() {
        {
            Store store = open();
            store.assignment_issued(an_assignment(3));  // of job 1 and computer 7, which are gone
            store.end_turn();
        }
        {
            Database older(database());
            older.execute("DROP TABLE last_number");
            older.execute("PRAGMA user_version=2");
        }
        QCOMPARE(open().last_numbers(), (LastNumbers{7, 1, 3}));
    }

    void a_database_of_a_later_version_is_left_alone() {
        {
            Database newer(database());
            newer.execute("PRAGMA user_version=1000");
        }
        VERIFY_REFUSED(open(), "update goblin-lab");
    }

    void a_damaged_database_is_refused_and_left_alone() {
        FILE* const file = std::fopen(database().c_str(), "wb");
        for (int i = 0; i < 10'000; ++i) std::fputc(i * 7 % 251, file);
        std::fclose(file);
        VERIFY_REFUSED(open(), "damaged");
        QCOMPARE(std::filesystem::file_size(database()), uintmax_t{10'000});
    }

    void what_a_contributor_says_is_kept_as_text() {
        Store store = open();
        Computer computer;
        computer.id = 1;
        computer.volunteer = 1;
        computer.name = "'); DROP TABLE job;--";
        Volunteer volunteer;
        volunteer.id = 1;
        store.volunteer(volunteer);
        store.computer(computer);
        store.job(a_job(1));
        wait_for(store);
        QCOMPARE(store.computers().at(0).name, computer.name);
        QCOMPARE(store.jobs().size(), size_t{1});
    }

  private:
    std::filesystem::path database() const { return *folder_ / "lab.sqlite"; }
    Store open() const {
        return Store(database(), [](const std::string& reason) { qFatal("%s", reason.c_str()); });
    }
    static void wait_for(Store& store) {
        std::promise<void> kept;
        store.after_commit([&] { kept.set_value(); });
        store.end_turn();
        kept.get_future().get();
    }
    static JobRecord a_job(JobId id) {
        JobRecord job;
        job.id = id;
        job.kind = "product";
        job.specification = "{\"a\":\"'\"}";
        job.choice = {Policy::redundant, Policy::automatic, 3};
        job.tasks = 100;
        job.state = JobState::running;
        return job;
    }
    static Assignment an_assignment(AssignmentNumber number) {
        Assignment assignment;
        assignment.number = number;
        assignment.id.fill(static_cast<uint8_t>(number));
        assignment.key.fill(static_cast<uint8_t>(number + 100));
        assignment.job = 1;
        assignment.task = 10 * number;
        assignment.computer = 7;
        assignment.duration_ms = 30'000;
        return assignment;
    }
    static std::shared_ptr<Syncable> a_file() {
        struct File final : Syncable {
            void sync() override {}
        };
        return std::make_shared<File>();
    }

    std::unique_ptr<test::TemporaryFolder> folder_;
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestStore)
#include "test_store.moc"
