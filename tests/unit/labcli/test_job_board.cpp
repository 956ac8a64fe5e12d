// A job from its submission to its end, over restarts of the lab node and with contributors that come and go.
#include <QTest>

#include <nlohmann/json.hpp>

#include "fake_lab.hpp"
#include "labcli/schedule/job_report.hpp"

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

class TestJobBoard : public QObject {
    Q_OBJECT

  private slots:
    void a_job_without_tasks_is_done_at_once() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(0);
        QVERIFY(lab.submit(plan, Policy::automatic).record.state == JobState::done);
        QVERIFY(plan->finished);
    }

    void a_job_of_many_tasks_is_a_range_until_they_are_handed_out() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(100'000, DType::i8, 1, 1), Policy::recompute);
        QVERIFY(job.queue.open().size() <= 4096);
        QVERIFY(job.queue.unprepared() > 90'000);
        LiveComputer& computer = lab.join_proven();
        for (int i = 0; i < 20; ++i) lab.take(computer, 10);
        QVERIFY(job.queue.open().size() <= 4096);
    }

    // ---- auto
    void auto_checks_integer_products_by_the_product_check() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(2, DType::i32), Policy::automatic);
        lab.take(lab.join());
        QVERIFY(job.record.choice.resolved == Policy::product);
    }

    void auto_takes_two_volunteers_for_floats_where_two_are_at_hand() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(2, DType::f32), Policy::automatic);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        for (LiveComputer* computer : {&one, &two}) lab.exchange(*computer, lab.request(*computer, 0));
        lab.pass_ms(2'000);
        lab.take(one);
        QVERIFY(job.record.choice.resolved == Policy::redundant);
    }

    void auto_recomputes_floats_where_one_volunteer_is_alone() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(2, DType::f32), Policy::automatic);
        lab.take(lab.join());
        QVERIFY(job.record.choice.resolved == Policy::recompute);
    }

    void auto_recomputes_the_rest_when_volunteers_leave() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(2, DType::f32, 8);
        Job& job = lab.submit(plan, Policy::automatic);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        for (LiveComputer* computer : {&one, &two}) lab.exchange(*computer, lab.request(*computer, 0));
        lab.pass_ms(2'000);
        std::vector<Grant> all = lab.take(one);
        QVERIFY(job.record.choice.resolved == Policy::redundant);
        lab.do_honestly(one, all);
        for (int second = 0; second < 300 && job.record.state == JobState::running; ++second) {
            lab.pass_ms(1'000);
            const std::vector<Grant> more = lab.take(one);
            lab.do_honestly(one, more);
            all.insert(all.end(), more.begin(), more.end());
            for (const Grant& grant : all)
                if (lab.asked(grant)) lab.tell(one, FakeLab::data(grant, FakeLab::honest(grant)));
        }
        QVERIFY(job.record.choice.resolved == Policy::recompute);
        QVERIFY(lab.journal.tells("too few independent volunteers"));
        QVERIFY(job.record.state == JobState::done);
        for (const TaskNumber task : {0, 1})
            QVERIFY(plan->merged.at(task).same_bits(plan->right_answer(task)));
    }

    void redundant_as_asked_for_waits_and_says_so() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& one = lab.join();
        lab.do_honestly(one, lab.take(one));
        for (int second = 0; second < 100; ++second) {
            lab.pass_ms(1'000);
            lab.exchange(one, lab.request(one, 1));
        }
        QVERIFY(job.record.state == JobState::running);
        QCOMPARE(lab.board.reason_of(job),
                 std::string("waiting for 1 more independent volunteers: each task needs 2"));
    }

    void a_job_nobody_computes_says_why() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        QVERIFY(lab.board.reason_of(job).find("none is connected") != std::string::npos);
        LiveComputer& pending = lab.join();
        lab.contributors.set_state(lab.contributors.volunteer(pending.record.volunteer),
                                   MemberState::pending);
        QCOMPARE(lab.board.reason_of(job),
                 fmt::format("waiting for a person to approve a volunteer: goblin-lab node approve {}",
                             pending.record.id));
        lab.exchange(pending, lab.request(pending, 1));
        lab.pass_ms(2'000);
        QVERIFY(lab.board.reason_of(job).find("approve") != std::string::npos);
    }

    void a_plan_is_made_for_small_computers_where_there_are_no_others() {
        FakeLab lab;
        const auto offer = [&lab](uint64_t memory_bytes) {
            LiveComputer& computer = lab.join();
            ExchangeRequest request = lab.request(computer, 0);
            request.want.devices[0].memory_bytes = memory_bytes;
            lab.exchange(computer, request);
        };
        offer(0);
        offer(uint64_t{4} << 20);
        QCOMPARE(lab.board.capacity().computers, uint64_t{0});
        offer(uint64_t{20} << 20);
        offer(uint64_t{56} << 20);
        QCOMPARE(lab.board.capacity().computers, uint64_t{1});
        QCOMPARE(lab.board.capacity().smallest_memory_bytes, uint64_t{56} << 20);
        offer(uint64_t{1} << 30);
        QCOMPARE(lab.board.capacity().computers, uint64_t{1});
        QCOMPARE(lab.board.capacity().smallest_memory_bytes, uint64_t{1} << 30);
    }

    void a_job_that_needs_more_memory_than_anybody_has_says_so() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        plan->memory_per_task_bytes = uint64_t{3} << 30;
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& computer = lab.join();
        lab.exchange(computer, lab.request(computer, 0));
        lab.pass_ms(1'000);
        QCOMPARE(
            lab.board.reason_of(job),
            std::string("waiting for a contributor with 3 GiB of memory for a task: the largest of those "
                        "connected has 1 GiB"));
    }

    void a_job_waits_for_its_turn_and_says_whose_it_is() {
        FakeLab lab;
        Job& first = lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        Job& second = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        QVERIFY(first.record.state == JobState::queued && second.record.state == JobState::queued);
        LiveComputer& one = lab.join_proven();
        lab.exchange(one, lab.request(one, 0));
        QCOMPARE(lab.board.reason_of(first), std::string("waiting for a contributor to ask for tasks"));
        lab.take(one, 1);
        lab.pass_ms(1'000);
        QVERIFY(first.record.state == JobState::running);
        QCOMPARE(lab.board.reason_of(first), std::string("computing"));
        QVERIFY(second.record.state == JobState::queued);
        QVERIFY(lab.journal.jobs.at(first.record.id).state == JobState::running);
        QCOMPARE(lab.board.reason_of(second),
                 fmt::format("waiting for its turn: job {} comes first", first.record.id));
        QCOMPARE(lab.take(one, 2).size(), size_t{2});
        QVERIFY(second.record.state == JobState::running);
        QCOMPARE(lab.board.reason_of(second), std::string("computing"));
    }

    void time_left_is_said_only_while_somebody_computes() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(3), Policy::recompute);
        LiveComputer& one = lab.join_proven();
        lab.pass_ms(3'000);
        lab.do_honestly(one, lab.take(one, 1));
        lab.take(one, 1);
        lab.pass_ms(1'000);
        const auto left_s = [&] {
            return report_of(job, lab.contributors, lab.now_ms, lab.board.is_computed(job))["left_s"];
        };
        QCOMPARE(left_s().get<double>(), 8.0);
        lab.pass_ms(70'000);
        QVERIFY(left_s().is_null());
    }

    void a_job_that_waits_can_be_stopped() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        lab.board.end(job, JobState::stopped, "stopped by its owner");
        QVERIFY(lab.take(lab.join()).empty());
    }

    void who_has_fallen_silent_or_stopped_is_not_said_to_compute() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& one = lab.join_proven();
        lab.take(one, 1);
        lab.pass_ms(40'000);  // an exchange may take half a minute
        QCOMPARE(lab.board.reason_of(job), std::string("computing"));
        lab.pass_ms(30'000);
        QCOMPARE(
            lab.board.reason_of(job),
            std::string("waiting for contributors: none is connected, the last was heard 1 min 10 s ago"));
        QCOMPARE(one.state_text(lab.now_ms), std::string("silent"));
        ExchangeRequest request = lab.request(one, 0);
        request.state = "computing";
        lab.exchange(one, request);
        QCOMPARE(lab.board.reason_of(job), std::string("computing"));
        QCOMPARE(one.state_text(lab.now_ms), std::string("computing"));
        request.state = "stopping";
        lab.exchange(one, request);
        lab.pass_ms(2'000);
        QCOMPARE(lab.board.reason_of(job),
                 std::string("waiting for contributors: none is connected, the last was heard 2 s ago"));
    }

    // ---- restarts
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

    // ---- what a plan is made for
    void nobody_can_make_plans_absurd_by_what_it_claims() {
        FakeLab lab;
        LiveComputer& usual = lab.join();
        LiveComputer& tiny = lab.join();
        LiveComputer& snail = lab.join();
        lab.exchange(usual, lab.request(usual, 0));
        ExchangeRequest request = lab.request(tiny, 0);
        request.want.devices[0].memory_bytes = 1;
        lab.exchange(tiny, request);
        request = lab.request(snail, 0);
        request.want.devices[0].speed_flops = 1;
        lab.exchange(snail, request);
        const Capacity capacity = lab.board.capacity();
        QCOMPARE(capacity.computers, uint64_t{2});
        QCOMPARE(capacity.smallest_memory_bytes, uint64_t{1} << 30);
        QCOMPARE(capacity.slowest_flops, uint64_t{1'000'000'000});
    }

    void a_computer_that_slept_over_a_task_does_not_count_as_slow_for_ever() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3, DType::i32, 64, 64), Policy::recompute);
        LiveComputer& laptop = lab.join();
        const std::vector<Grant> grants = lab.take(laptop);
        lab.pass_ms(3'600'000);
        lab.do_honestly(laptop, grants);
        QVERIFY(lab.board.capacity().slowest_flops >= 1'000'000'000);
    }

    void a_thousand_tiny_tasks_say_nothing_about_slowness() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        const uint64_t before = (lab.take(computer, 0), computer.speed_flops());
        for (int i = 0; i < 50; ++i) {
            const std::vector<Grant> grants = lab.take(computer, 1);
            lab.now_ms += 20;  // there and back
            lab.do_honestly(computer, grants);
        }
        QVERIFY(computer.speed_flops() >= before);
    }

    void a_slow_computer_is_known_as_slow() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3, DType::i32, 64, 64), Policy::recompute);
        LiveComputer& computer = lab.join();
        const std::vector<Grant> grants = lab.take(computer);
        lab.pass_ms(10'000);
        lab.do_honestly(computer, grants);
        QCOMPARE(computer.record.speed_flops, uint64_t{2 * 64 * 64 * 64 / 10});
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

QTEST_APPLESS_MAIN(goblin::lab::TestJobBoard)
#include "test_job_board.moc"
