// Tasks that are late: who has them then, who may still return them, who gets them again.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestDeadlines : public QObject {
    Q_OBJECT

  private slots:
    void a_late_task_goes_to_another_and_may_still_be_returned() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& slow = lab.join();
        const Grant grant = lab.take(slow)[0];
        QVERIFY(grant.duration_ms >= 30'000);
        lab.pass_ms(grant.duration_ms - 1'000);
        QCOMPARE(lab.state(grant), AssignmentState::issued);
        lab.pass_ms(2'000);
        QCOMPARE(lab.state(grant), AssignmentState::expired);
        LiveComputer& other = lab.join();
        QCOMPARE(lab.take(other).size(), size_t{1});
        lab.do_honestly(slow, {grant});
        QVERIFY(job.record.state == JobState::done);
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
    }

    void one_that_is_asked_to_send_and_does_not_is_late_as_well() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& silent = lab.join();
        const Grant grant = lab.take(silent)[0];
        lab.tell(silent, FakeLab::commitment(grant, FakeLab::honest(grant)));
        QVERIFY(lab.asked(grant));
        lab.pass_ms(grant.duration_ms + 1'000);
        QCOMPARE(lab.state(grant), AssignmentState::expired);
        LiveComputer& other = lab.join();
        QCOMPARE(lab.take(other).size(), size_t{1});
    }

    void one_that_has_committed_is_never_late_until_it_is_asked() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& one = lab.join();
        const Grant grant = lab.take(one)[0];
        lab.tell(one, FakeLab::commitment(grant, FakeLab::honest(grant)));
        lab.pass_ms(10'000'000);
        QCOMPARE(lab.state(grant), AssignmentState::committed);
    }

    void no_claim_of_slowness_keeps_a_task_for_longer_than_the_limit() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1, DType::i32, 64, 64), Policy::recompute);
        LiveComputer& snail = lab.join();
        ExchangeRequest request = lab.request(snail, 1);
        request.want.devices[0].speed_flops = 1;
        const Grant grant = lab.exchange(snail, request)->tasks.at(0);
        QVERIFY2(grant.duration_ms <= 60'000 + 4 * limits::task_longest_ms,
                 qPrintable(QString::number(grant.duration_ms)));
    }

    void a_worker_that_lost_a_late_task_gets_it_again_when_nobody_else_is_there() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& only = lab.join();
        const Grant lost = lab.take(only)[0];
        lab.pass_ms(lost.duration_ms + 1'000);
        std::vector<Grant> again;
        for (int second = 0; second < 20 && again.empty(); ++second) {
            ExchangeRequest request = lab.request(only, 1);
            request.session[0] = 2;
            request.holding.clear();
            again = lab.exchange(only, request)->tasks;
            lab.pass_ms(1'000);
        }
        QCOMPARE(again.size(), size_t{1});
        ExchangeRequest request =
            lab.request(only, 0, {FakeLab::commitment(again[0], FakeLab::honest(again[0]))});
        request.session[0] = 2;
        lab.exchange(only, request);
        request = lab.request(only, 0, {FakeLab::data(again[0], FakeLab::honest(again[0]))});
        request.session[0] = 2;
        lab.exchange(only, request);
        QVERIFY(job.record.state == JobState::done);
    }

    void a_worker_that_still_computes_a_late_task_is_waited_for_when_nobody_else_is_there() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& slow = lab.join();
        const Grant late = lab.take(slow)[0];
        for (int second = 0; second < 120; ++second) {
            QVERIFY(lab.take(slow).empty());
            lab.pass_ms(1'000);
        }
        lab.do_honestly(slow, {late});
        QVERIFY(job.record.state == JobState::done);
    }

    void what_a_worker_lost_with_its_directory_is_not_waited_for() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::redundant);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant gone = lab.take(one)[0];
        lab.tell(one, FakeLab::commitment(gone, FakeLab::honest(gone)));
        ExchangeRequest started_again = lab.request(one, 0);
        started_again.session[0] = 2;
        started_again.holding.clear();
        lab.exchange(one, started_again);
        QCOMPARE(lab.state(gone), AssignmentState::failed);
        LiveComputer& three = lab.join();
        const std::vector<Grant> second = lab.take(two);
        const std::vector<Grant> third = lab.take(three);
        lab.do_honestly(two, second);
        lab.do_honestly(three, third);
        lab.do_honestly(two, second);
        QVERIFY(job.record.state == JobState::done);
        QCOMPARE(lab.contributors.volunteer(one.record.volunteer).disagreed, uint64_t{0});
    }

    void a_volunteer_never_has_two_claims_to_one_task() {
        // What was late may come back, but not beside a second try of the same volunteer: it would agree with
        // itself.
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& slow = lab.join_proven();
        const Grant late = lab.take(slow)[0];
        lab.pass_ms(late.duration_ms + 1'000);
        ExchangeRequest lost = lab.request(slow, 0);
        lost.holding.clear();
        lab.exchange(slow, lost);
        std::vector<Grant> again;
        for (int second = 0; second < 20 && again.empty(); ++second) {
            again = lab.take(slow);
            lab.pass_ms(1'000);
        }
        QCOMPARE(again.size(), size_t{1});
        QCOMPARE(lab.tell(slow, FakeLab::commitment(late, FakeLab::lie(late))).kind, ReceiptKind::refused);
        QCOMPARE(lab.tell(slow, FakeLab::commitment(again[0], FakeLab::lie(again[0]))).kind,
                 ReceiptKind::taken);
        QVERIFY(!lab.asked(again[0]));
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestDeadlines)
#include "test_deadlines.moc"
