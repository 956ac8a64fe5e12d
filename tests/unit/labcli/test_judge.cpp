// When a result is used: quorums, commitments first, record.tally.disputes settled by a referee, acceptance.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestJudge : public QObject {
    Q_OBJECT

  private slots:
    void nobody_is_asked_before_the_whole_quorum_has_committed() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant, 3);
        std::vector<LiveComputer*> computers = {&lab.join(), &lab.join(), &lab.join()};
        std::vector<Grant> grants;
        for (LiveComputer* computer : computers) grants.push_back(lab.take(*computer).at(0));
        for (size_t i = 0; i < 3; ++i) {
            QVERIFY(!lab.asked(grants[0]) && !lab.asked(grants[1]) && !lab.asked(grants[2]));
            lab.tell(*computers[i], FakeLab::commitment(grants[i], FakeLab::honest(grants[i])));
        }
        QCOMPARE(lab.asked(grants[0]) + lab.asked(grants[1]) + lab.asked(grants[2]), 1);
    }

    void who_is_asked_is_drawn() {
        int first_asked = 0;
        constexpr int tries = 200;
        for (int i = 0; i < tries; ++i) {
            FakeLab lab(static_cast<uint64_t>(i));
            lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
            LiveComputer& one = lab.join();
            LiveComputer& two = lab.join();
            const Grant first = lab.take(one)[0];
            const Grant second = lab.take(two)[0];
            lab.tell(one, FakeLab::commitment(first, FakeLab::honest(first)));
            lab.tell(two, FakeLab::commitment(second, FakeLab::honest(second)));
            first_asked += lab.asked(first);
        }
        QVERIFY2(first_asked > 60 && first_asked < 140,
                 qPrintable(QString::number(first_asked)));  // seeds are fixed
    }

    void the_second_of_two_that_agree_never_sends_its_numbers() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
        Job& job = lab.submit(plan, Policy::redundant);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant first = lab.take(one)[0];
        const Grant second = lab.take(two)[0];
        lab.tell(one, FakeLab::commitment(first, FakeLab::honest(first)));
        lab.tell(two, FakeLab::commitment(second, FakeLab::honest(second)));
        const bool first_sends = lab.asked(first);
        lab.tell(first_sends ? one : two,
                 FakeLab::data(first_sends ? first : second, FakeLab::honest(first)));
        QVERIFY(job.record.state == JobState::done);
        QCOMPARE(lab.state(first), AssignmentState::agreed);
        QCOMPARE(lab.state(second), AssignmentState::agreed);
        QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
        QVERIFY(plan->finished);
    }

    void a_dispute_convicts_the_liar_and_asks_a_third() {
        for (const uint64_t seed : {1, 2, 3, 4, 5}) {
            FakeLab lab(seed);
            const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
            Job& job = lab.submit(plan, Policy::redundant);
            LiveComputer& liar = lab.join();
            LiveComputer& honest = lab.join();
            const Grant lie = lab.take(liar)[0];
            const Grant truth = lab.take(honest)[0];
            lab.tell(liar, FakeLab::commitment(lie, FakeLab::lie(lie)));
            lab.tell(honest, FakeLab::commitment(truth, FakeLab::honest(truth)));
            // Whoever is drawn, both send in the end.
            for (int i = 0; i < 2; ++i) {
                if (lab.asked(lie)) lab.tell(liar, FakeLab::data(lie, FakeLab::lie(lie)));
                if (lab.asked(truth)) lab.tell(honest, FakeLab::data(truth, FakeLab::honest(truth)));
            }
            QCOMPARE(lab.state(lie), AssignmentState::disagreed);
            QCOMPARE(lab.contributors.volunteer(liar.record.volunteer).disagreed, uint64_t{1});
            QVERIFY(lab.journal.tells("convicted"));
            QVERIFY(plan->merged.empty());  // one that is right is not yet two that agree
            LiveComputer& third = lab.join();
            lab.do_honestly(third, lab.take(third));
            QVERIFY(job.record.state == JobState::done);
            QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
            QCOMPARE(lab.contributors.volunteer(honest.record.volunteer).disagreed, uint64_t{0});
            QCOMPARE(job.record.tally.disputes, uint64_t{2});  // that it was one, and how it ended
        }
    }

    void two_liars_that_disagree_are_both_convicted() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
        Job& job = lab.submit(plan, Policy::redundant);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        LiveComputer& three = lab.join();
        LiveComputer& four = lab.join();
        const auto other_lie = [](const Grant& grant) {
            Tensor numbers = FakeLab::honest(grant);
            numbers.bytes()[0] ^= std::byte{0x11};
            return numbers;
        };
        const Grant first = lab.take(one)[0];
        const Grant second = lab.take(two)[0];
        lab.tell(one, FakeLab::commitment(first, FakeLab::lie(first)));
        lab.tell(two, FakeLab::commitment(second, other_lie(second)));
        for (int i = 0; i < 2; ++i) {
            if (lab.asked(first)) lab.tell(one, FakeLab::data(first, FakeLab::lie(first)));
            if (lab.asked(second)) lab.tell(two, FakeLab::data(second, other_lie(second)));
        }
        QCOMPARE(lab.state(first), AssignmentState::disagreed);
        QCOMPARE(lab.state(second), AssignmentState::disagreed);
        const std::vector<Grant> third = lab.take(three);
        const std::vector<Grant> fourth = lab.take(four);
        lab.do_honestly(three, third);
        lab.do_honestly(four, fourth);
        lab.do_honestly(three, third);
        QVERIFY(job.record.state == JobState::done);
        QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
    }

    void a_majority_of_liars_does_not_outvote_one_that_is_right() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
        lab.submit(plan, Policy::redundant, 3);
        std::vector<LiveComputer*> computers = {&lab.join(), &lab.join(), &lab.join()};
        std::vector<Grant> grants;
        for (LiveComputer* computer : computers) grants.push_back(lab.take(*computer).at(0));
        const auto numbers = [&](size_t i) {
            return i == 2 ? FakeLab::honest(grants[i]) : FakeLab::lie(grants[i]);
        };
        for (size_t i = 0; i < 3; ++i) lab.tell(*computers[i], FakeLab::commitment(grants[i], numbers(i)));
        for (int round = 0; round < 3; ++round)
            for (size_t i = 0; i < 3; ++i)
                if (lab.asked(grants[i])) lab.tell(*computers[i], FakeLab::data(grants[i], numbers(i)));
        QCOMPARE(lab.state(grants[0]), AssignmentState::disagreed);
        QCOMPARE(lab.state(grants[1]), AssignmentState::disagreed);
        QCOMPARE(lab.contributors.volunteer(computers[2]->record.volunteer).disagreed, uint64_t{0});
        QVERIFY(plan->merged.empty());
    }

    void agreement_on_a_few_bytes_is_recomputed() {
        // 2×2 numbers of 4 bytes: two that agree may well agree by chance, or both return zeros.
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 2);
        lab.submit(plan, Policy::redundant);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant first = lab.take(one)[0];
        const Grant second = lab.take(two)[0];
        lab.do_with(one, {first}, FakeLab::lie);
        lab.do_with(two, {second}, FakeLab::lie);
        lab.do_with(one, {first}, FakeLab::lie);
        QCOMPARE(lab.state(first), AssignmentState::disagreed);
        QCOMPARE(lab.state(second), AssignmentState::disagreed);
        QVERIFY(plan->merged.empty());
    }

    void under_recompute_and_product_one_is_enough_and_a_liar_is_found() {
        for (const Policy policy : {Policy::recompute, Policy::product}) {
            FakeLab lab;
            const auto plan = std::make_shared<FakePlan>(1);
            Job& job = lab.submit(plan, policy);
            LiveComputer& liar = lab.join();
            LiveComputer& honest = lab.join();
            lab.do_with(liar, lab.take(liar), FakeLab::lie);
            QCOMPARE(lab.contributors.volunteer(liar.record.volunteer).disagreed, uint64_t{1});
            QVERIFY(plan->merged.empty());
            lab.do_honestly(honest, lab.take(honest));
            QVERIFY(job.record.state == JobState::done);
            QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
        }
    }

    void nothing_is_merged_before_it_is_verified() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(4, DType::i32, 8);
        lab.submit(plan, Policy::redundant);
        LiveComputer& one = lab.join_proven();
        lab.do_honestly(one, lab.take(one, 4));
        QVERIFY(plan->merged.empty());
        QVERIFY(lab.journal.accepted.empty());
    }

    void who_is_slower_than_the_verdict_hears_that_others_were_faster() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& slow = lab.join();
        const Grant late = lab.take(slow)[0];
        lab.pass_ms(late.duration_ms + 1'000);
        LiveComputer& fast = lab.join();
        lab.do_honestly(fast, lab.take(fast));
        QCOMPARE(lab.state(late), AssignmentState::cancelled);
        ExchangeRequest request = lab.request(slow, 0);
        request.holding = {late.assignment};
        const ExchangeReply reply = *lab.exchange(slow, request);
        QCOMPARE(reply.cancel.size(), size_t{1});
        QVERIFY(reply.cancel[0].reason.find("faster") != std::string::npos);
        QCOMPARE(lab.contributors.volunteer(slow.record.volunteer).disagreed, uint64_t{0});
    }

    void a_task_that_fails_for_everybody_is_computed_by_the_lab() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        Job& job = lab.submit(plan, Policy::redundant);
        for (int i = 0; i < 3; ++i) {
            LiveComputer& broken = lab.join();
            lab.tell(broken, FakeLab::ending(lab.take(broken).at(0), ResultKind::failed, "it crashed"));
        }
        QVERIFY(job.record.state == JobState::done);
        QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
        QCOMPARE(job.record.tally.computed_by_lab, uint64_t{1});
        QVERIFY(lab.journal.tells("the lab computes it itself"));
    }

    void handing_back_is_no_failure_of_the_task() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        for (int i = 0; i < 5; ++i) {
            LiveComputer& paused = lab.join();
            lab.tell(paused, FakeLab::ending(lab.take(paused).at(0), ResultKind::handed_back));
        }
        QCOMPARE(job.record.tally.computed_by_lab, uint64_t{0});
        QVERIFY(job.record.state == JobState::running);
    }

    void an_input_that_changed_fails_the_job_and_blames_nobody() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& computer = lab.join();
        const std::vector<Grant> grants = lab.take(computer);
        plan->inputs_changed = true;
        lab.do_honestly(computer, grants);
        QVERIFY(job.record.state == JobState::failed);
        QVERIFY(job.record.reason.find("changed") != std::string::npos);
        QVERIFY(plan->discarded);
        QCOMPARE(lab.contributors.volunteer(computer.record.volunteer).disagreed, uint64_t{0});
        QVERIFY(computer.open.empty());
    }

    void a_result_that_ends_while_it_is_verified_is_no_trouble() {
        // Handed back, or its computer banned, between the request to the verifier and its answer.
        for (const bool ban : {false, true}) {
            FakeLab lab;
            Job& job = lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
            LiveComputer& computer = lab.join();
            const Grant grant = lab.take(computer)[0];
            lab.tell(computer, FakeLab::commitment(grant, FakeLab::honest(grant)));
            lab.desk.exchange(computer, {},
                              lab.request(computer, 0, {FakeLab::data(grant, FakeLab::honest(grant))}),
                              [](const Answer<ExchangeReply>&) {});
            if (ban)
                lab.desk.drop_assignments(computer, "banned");
            else
                lab.desk.exchange(computer, {},
                                  lab.request(computer, 0, {FakeLab::ending(grant, ResultKind::handed_back)}),
                                  [](const Answer<ExchangeReply>&) {});
            lab.run();
            QCOMPARE(job.queue.accepted(), uint64_t{1});  // what was right is used all the same
        }
    }

    void a_stopped_job_drops_verdicts_that_come_later() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& computer = lab.join();
        const Grant grant = lab.take(computer)[0];
        lab.tell(computer, FakeLab::commitment(grant, FakeLab::honest(grant)));
        lab.desk.exchange(computer, {},
                          lab.request(computer, 0, {FakeLab::data(grant, FakeLab::honest(grant))}),
                          [](const Answer<ExchangeReply>&) {});
        lab.board.end(job, JobState::stopped, "stopped by its owner");
        lab.run();
        QVERIFY(job.record.state == JobState::stopped);
        QVERIFY(computer.open.empty());
        QVERIFY(plan->discarded);
    }

    // ---- trusted machines
    void a_trusted_machine_recomputes_in_the_labs_stead() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& trusted = lab.join(true);
        LiveComputer& stranger = lab.join();
        LiveComputer& other = lab.join();
        lab.exchange(trusted, lab.request(trusted, 0));
        const Grant first = lab.take(stranger)[0];
        lab.tell(stranger, FakeLab::commitment(first, FakeLab::honest(first)));
        QVERIFY(lab.take(other).empty());
        lab.do_honestly(trusted, lab.take(trusted));
        if (lab.asked(first)) lab.tell(stranger, FakeLab::data(first, FakeLab::honest(first)));
        QVERIFY(job.record.state == JobState::done);
        QCOMPARE(lab.state(first), AssignmentState::agreed);
    }

    void a_liar_is_convicted_by_a_trusted_machine() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1, DType::i32, 8);
        Job& job = lab.submit(plan, Policy::recompute);
        LiveComputer& trusted = lab.join(true);
        LiveComputer& liar = lab.join();
        lab.exchange(trusted, lab.request(trusted, 0));
        const Grant lie = lab.take(liar)[0];
        const Grant truth = lab.take(trusted)[0];
        lab.tell(liar, FakeLab::commitment(lie, FakeLab::lie(lie)));
        lab.do_honestly(trusted, {truth});
        if (lab.asked(lie)) lab.tell(liar, FakeLab::data(lie, FakeLab::lie(lie)));
        if (lab.asked(truth)) lab.tell(trusted, FakeLab::data(truth, FakeLab::honest(truth)));
        QCOMPARE(lab.state(lie), AssignmentState::disagreed);
        QVERIFY(job.record.state == JobState::done);
        QVERIFY(plan->merged.at(0).same_bits(plan->right_answer(0)));
    }

    void a_trusted_machine_alone_is_enough() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& trusted = lab.join(true);
        lab.do_honestly(trusted, lab.take(trusted));
        QVERIFY(job.record.state == JobState::done);
    }

    void a_trusted_machine_that_left_is_not_waited_for() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& trusted = lab.join(true);
        LiveComputer& stranger = lab.join();
        lab.exchange(trusted, lab.request(trusted, 0));
        const Grant grant = lab.take(stranger)[0];
        lab.tell(stranger, FakeLab::commitment(grant, FakeLab::honest(grant)));
        QVERIFY(!lab.asked(grant));
        lab.pass_ms(200'000);
        QVERIFY(lab.asked(grant));
        lab.tell(stranger, FakeLab::data(grant, FakeLab::honest(grant)));
        QVERIFY(job.record.state == JobState::done);
    }

    void a_stranger_that_never_sends_does_not_hold_up_a_trusted_result() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::recompute);
        LiveComputer& trusted = lab.join(true);
        LiveComputer& silent = lab.join();
        lab.exchange(trusted, lab.request(trusted, 0));
        const Grant lie = lab.take(silent)[0];
        const Grant truth = lab.take(trusted)[0];
        lab.tell(silent, FakeLab::commitment(lie, FakeLab::lie(lie)));
        lab.do_honestly(trusted, {truth});
        for (int second = 0; second < 100 && job.record.state == JobState::running; ++second) {
            lab.exchange(trusted, lab.request(trusted, 1));
            if (lab.asked(truth)) lab.tell(trusted, FakeLab::data(truth, FakeLab::honest(truth)));
            lab.pass_ms(1'000);
        }
        QVERIFY(job.record.state == JobState::done);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestJudge)
#include "test_judge.moc"
