// Jobs over restarts of the lab node: what goes on, what is asked for again, what can't be taken up.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

namespace {

// The same lab after a restart: a new scheduler that knows what the old one's journal kept.
std::unique_ptr<FakeLab> restarted(FakeLab& before, const std::shared_ptr<FakePlan>& plan, JobId job) {
    auto after = std::make_unique<FakeLab>(99);
    after->journal.assignments = before.journal.assignments;
    after->journal.accepted = before.journal.accepted;
    std::vector<Volunteer> volunteers;
    std::vector<Computer> computers;
    for (const auto& [id, volunteer] : before.journal.volunteers) volunteers.push_back(volunteer);
    for (const auto& [id, computer] : before.contributors.computers()) computers.push_back(computer.record);
    after->contributors.load({}, volunteers, computers);
    std::vector<TaskNumber> accepted;
    for (const auto& [of_job, task] : before.journal.accepted) accepted.push_back(task);
    after->board.add(before.journal.jobs.at(job), plan, {accepted, before.journal.open_assignments(job), {}});
    after->run();
    return after;
}

}  // namespace

class TestJobRestarts : public QObject {
    Q_OBJECT

  private slots:
    void a_job_that_waits_waits_after_a_restart_too() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(2);
        const JobId waiting = before.submit(plan, Policy::recompute).record.id;
        QVERIFY(restarted(before, plan, waiting)->board.find(waiting)->record.state == JobState::queued);
        before.take(before.join());
        QVERIFY(restarted(before, plan, waiting)->board.find(waiting)->record.state == JobState::running);
    }

    void a_job_that_can_not_be_opened_again_fails_with_its_books_closed() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(3);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        LiveComputer& one = before.join_proven();
        const std::vector<Grant> grants = before.take(one, 2);
        before.do_honestly(one, {grants[0]});
        FakeLab after(99);
        after.journal.assignments = before.journal.assignments;
        after.board.add_broken(before.journal.jobs.at(id), plan->summary(),
                               {{before.task(grants[0])}, before.journal.open_assignments(id), {}},
                               "the unfinished output is gone");
        const Job& job = *after.board.find(id);
        QVERIFY(job.record.state == JobState::failed);
        QCOMPARE(after.board.reason_of(*after.board.find(id)), std::string("the unfinished output is gone"));
        QVERIFY(after.state(grants[1]) == AssignmentState::cancelled);
        QVERIFY(after.journal.open_assignments(id).empty());
        for (const char* part : {"\"tasks\":3", "\"accepted\":1"})
            QVERIFY2(job.record.report.find(part) != std::string::npos, job.record.report.c_str());
    }

    void operands_that_change_end_the_job_though_nothing_more_of_them_is_read() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(3);
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        lab.do_honestly(computer, lab.take(computer, 1));
        const std::vector<Grant> others = lab.take(computer, 2);
        plan->inputs_changed = true;
        lab.pass_ms(2'000);
        QVERIFY(job.record.state == JobState::failed);
        QVERIFY(job.record.reason.find("found it changed") != std::string::npos);
        QCOMPARE(lab.journal.accepted.size(), size_t{1});
        for (const Grant& grant : others) QVERIFY(lab.state(grant) == AssignmentState::cancelled);
        QVERIFY(plan->discarded);
    }

    void when_operands_changed_over_a_restart_nothing_stays_open() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(3);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        const Grant grant = before.take(before.join())[0];
        plan->inputs_changed = true;
        const auto after = restarted(before, plan, id);
        QVERIFY(after->board.find(id)->record.state == JobState::failed);
        QVERIFY(after->state(grant) == AssignmentState::cancelled);
    }

    void after_a_restart_open_assignments_go_on() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(3, DType::i32, 8);
        const JobId id = before.submit(plan, Policy::redundant).record.id;
        LiveComputer& one = before.join_proven();
        const std::vector<Grant> grants = before.take(one, 2);
        before.tell(one, FakeLab::commitment(grants[0], FakeLab::honest(grants[0])));
        const auto after = restarted(before, plan, id);
        LiveComputer& same = *after->contributors.computer(one.record.id);
        QCOMPARE(same.open.size(), size_t{2});
        QCOMPARE(same.uncommitted, uint64_t{1});
        QVERIFY(after->state(grants[0]) == AssignmentState::committed);
        after->tell(same, FakeLab::commitment(grants[1], FakeLab::honest(grants[1])));
        Job& job = *after->board.find(id);
        LiveComputer& other = join_after(*after);
        std::vector<Grant> mine = grants;
        std::vector<Grant> others;
        while (job.record.state == JobState::running) {
            for (LiveComputer* computer : {&same, &other}) {
                const std::vector<Grant> more = after->take(*computer, 3);
                std::vector<Grant>& all = computer == &same ? mine : others;
                all.insert(all.end(), more.begin(), more.end());
                for (const Grant& grant : more)
                    after->tell(*computer, FakeLab::commitment(grant, FakeLab::honest(grant)));
            }
            for (const Grant& grant : mine)
                if (after->asked(grant)) after->tell(same, FakeLab::data(grant, FakeLab::honest(grant)));
            for (const Grant& grant : others)
                if (after->asked(grant)) after->tell(other, FakeLab::data(grant, FakeLab::honest(grant)));
            after->pass_ms(1'000);
        }
        QVERIFY(job.record.state == JobState::done);
        for (const TaskNumber task : {0, 1, 2})
            QVERIFY(plan->merged.at(task).same_bits(plan->right_answer(task)));
    }

    void after_a_restart_an_open_assignment_has_its_full_duration_again() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(1);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        LiveComputer& one = before.join();
        const Grant grant = before.take(one)[0];
        before.pass_ms(grant.duration_ms - 2'000);
        const auto after = restarted(before, plan, id);
        after->pass_ms(grant.duration_ms - 2'000);
        QVERIFY(after->state(grant) == AssignmentState::issued);
        after->pass_ms(4'000);
        QVERIFY(after->state(grant) == AssignmentState::expired);
    }

    void after_a_restart_one_that_had_committed_is_not_late() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(1);
        const JobId id = before.submit(plan, Policy::redundant).record.id;
        LiveComputer& one = before.join();
        const Grant grant = before.take(one)[0];
        before.tell(one, FakeLab::commitment(grant, FakeLab::honest(grant)));
        const auto after = restarted(before, plan, id);
        after->pass_ms(1'000'000);
        QVERIFY(after->state(grant) == AssignmentState::committed);
        QCOMPARE(after->contributors.computer(one.record.id)->quota, uint64_t{1});
    }

    void after_a_restart_late_ones_do_not_hide_others_that_become_late() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(1500, DType::i8, 1, 1);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        for (int i = 0; i < 5; ++i) {
            LiveComputer& computer = before.join_proven();
            before.take(computer, 256);
        }
        before.pass_ms(60'000);
        const auto after = restarted(before, plan, id);
        LiveComputer& next = join_after(*after);
        const Grant grant = after->take(next)[0];
        after->pass_ms(grant.duration_ms + 5'000);
        QVERIFY(after->state(grant) == AssignmentState::expired);
    }

    void after_a_restart_numbers_that_had_arrived_are_asked_for_again() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(1);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        LiveComputer& one = before.join();
        const Grant grant = before.take(one)[0];
        before.tell(one, FakeLab::commitment(grant, FakeLab::honest(grant)));
        // Killed between the arrival of the numbers and the verdict.
        before.desk.exchange(one, {}, before.request(one, 0, {FakeLab::data(grant, FakeLab::honest(grant))}),
                             [](const Answer<ExchangeReply>&) {});
        const auto after = restarted(before, plan, id);
        QVERIFY(after->asked(grant));
        LiveComputer& same = *after->contributors.computer(one.record.id);
        after->tell(same, FakeLab::data(grant, FakeLab::honest(grant)));
        QVERIFY(after->board.find(id)->record.state == JobState::done);
    }

    void after_a_restart_nothing_accepted_is_computed_again() {
        FakeLab before;
        const auto plan = std::make_shared<FakePlan>(2);
        const JobId id = before.submit(plan, Policy::recompute).record.id;
        LiveComputer& one = before.join();
        const std::vector<Grant> first = before.take(one);
        const TaskNumber done = before.task(first[0]);
        before.do_honestly(one, first);
        const auto after = restarted(before, plan, id);
        Job& job = *after->board.find(id);
        QCOMPARE(job.queue.accepted(), uint64_t{1});
        LiveComputer& same = *after->contributors.computer(one.record.id);
        const std::vector<Grant> second = after->take(same, 5);
        QCOMPARE(second.size(), size_t{1});
        QVERIFY(after->task(second[0]) != done);
        after->do_honestly(same, second);
        QVERIFY(job.record.state == JobState::done);
    }

  private:
    // A volunteer that joins the restarted lab; numbers below are taken.
    static LiveComputer& join_after(FakeLab& lab) {
        Volunteer volunteer;
        volunteer.id = 1'000;
        volunteer.public_key[5] = 1;
        volunteer.invitation = 1'000;
        volunteer.agreed = 1;
        Computer computer;
        computer.id = 1'000;
        computer.volunteer = 1'000;
        computer.credential_hash.bytes[5] = 1;
        lab.contributors.load({}, {volunteer}, {computer});
        LiveComputer& joined = *lab.contributors.computer(1'000);
        joined.quota = limits::open_assignments;
        return joined;
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestJobRestarts)
#include "test_job_restarts.moc"
