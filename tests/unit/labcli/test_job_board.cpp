// A job from its submission to its end, with contributors that come and go.
#include <QTest>
#include <nlohmann/json.hpp>

#include "fake_lab.hpp"
#include "labcli/schedule/job_report.hpp"

namespace goblin::lab {

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
                 std::string("waiting for 1 more independent volunteer: each task needs 2"));
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
        QCOMPARE(lab.board.presence().capacity().computers, uint64_t{0});
        offer(uint64_t{20} << 20);
        offer(uint64_t{56} << 20);
        QCOMPARE(lab.board.presence().capacity().computers, uint64_t{1});
        QCOMPARE(lab.board.presence().capacity().smallest_memory_bytes, uint64_t{56} << 20);
        offer(uint64_t{1} << 30);
        QCOMPARE(lab.board.presence().capacity().computers, uint64_t{1});
        QCOMPARE(lab.board.presence().capacity().smallest_memory_bytes, uint64_t{1} << 30);
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
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestJobBoard)
#include "test_job_board.moc"
