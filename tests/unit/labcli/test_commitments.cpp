// A commitment binds: who gives it up has failed, and gains nothing by it.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

namespace {

ExchangeRequest new_session(FakeLab& lab, const LiveComputer& computer, uint8_t number) {
    ExchangeRequest request = lab.request(computer, 0);
    request.session[0] = number;
    request.holding.clear();
    return request;
}

}  // namespace

class TestCommitments : public QObject {
    Q_OBJECT

  private slots:
    void who_hands_back_what_it_committed_to_has_failed_and_waits() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& liar = lab.join_proven(16);
        const Grant grant = lab.take(liar)[0];
        lab.tell(liar, FakeLab::commitment(grant, FakeLab::lie(grant)));
        QVERIFY(lab.asked(grant));
        lab.tell(liar, FakeLab::ending(grant, ResultKind::handed_back, "never mind"));
        QCOMPARE(lab.state(grant), AssignmentState::failed);
        QCOMPARE(lab.contributors.volunteer(liar.record.volunteer).failed, uint64_t{1});
        QCOMPARE(liar.quota, uint64_t{8});
        QVERIFY(lab.take(liar).empty());
    }

    void who_forgets_commitments_by_a_new_session_has_failed_and_waits_longer_each_time() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1000), Policy::recompute);
        LiveComputer& liar = lab.join_proven(16);
        uint64_t lies = 0;
        uint8_t session = 1;
        for (int second = 0; second < 60; ++second) {
            ExchangeRequest request = lab.request(liar, 1);
            request.session[0] = session;
            const std::optional<ExchangeReply> reply = lab.exchange(liar, request);
            for (const Grant& grant : reply->tasks) {
                ++lies;
                ExchangeRequest lie = lab.request(liar, 0, {FakeLab::commitment(grant, FakeLab::lie(grant))});
                lie.session[0] = session;
                lab.exchange(liar, lie);
                lab.exchange(liar, new_session(lab, liar, ++session));
            }
            lab.pass_ms(1'000);
        }
        QVERIFY2(lies <= 7, qPrintable(QString::number(lies)));
        QCOMPARE(lab.contributors.volunteer(liar.record.volunteer).failed, lies);
    }

    void what_a_computer_lost_with_its_disk_is_one_error() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::redundant);
        LiveComputer& computer = lab.join_proven(64);
        std::vector<Result> commitments;
        for (const Grant& grant : lab.take(computer, 4))
            commitments.push_back(FakeLab::commitment(grant, FakeLab::honest(grant)));
        QCOMPARE(commitments.size(), size_t{4});
        lab.exchange(computer, lab.request(computer, 0, commitments));
        lab.exchange(computer, new_session(lab, computer, 2));
        QCOMPARE(computer.quota, uint64_t{32});
    }

    void numbers_that_have_arrived_are_judged_whatever_is_said_meanwhile() {
        int liar_asked_first = 0;  // who sends first is drawn
        for (uint64_t seed = 1; seed <= 16; ++seed) {
            FakeLab lab(seed);
            lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::redundant);
            LiveComputer& liar = lab.join();
            LiveComputer& honest = lab.join();
            const Grant lied = lab.take(liar)[0];
            const Grant right = lab.take(honest)[0];
            lab.tell(liar, FakeLab::commitment(lied, FakeLab::lie(lied)));
            lab.tell(honest, FakeLab::commitment(right, FakeLab::honest(right)));
            if (!lab.asked(lied)) continue;
            ++liar_asked_first;
            lab.tell(liar, FakeLab::data(lied, FakeLab::lie(lied)));
            const Receipt receipt = lab.tell(liar, FakeLab::ending(lied, ResultKind::handed_back));
            QCOMPARE(receipt.kind, ReceiptKind::refused);
            lab.tell(honest, FakeLab::data(right, FakeLab::honest(right)));
            QCOMPARE(lab.state(lied), AssignmentState::disagreed);
        }
        QVERIFY(liar_asked_first > 0);
    }

    void a_task_that_was_given_up_goes_to_those_who_are_drawn() {
        // Else conspirators give up every task but those that they hold alone.
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::redundant);
        LiveComputer& liar = lab.join();
        const Grant lied = lab.take(liar)[0];
        lab.join();
        lab.tell(liar, FakeLab::commitment(lied, FakeLab::lie(lied)));
        QCOMPARE(job.queue.window(), size_t{1});
        lab.exchange(liar, new_session(lab, liar, 2));
        QCOMPARE(job.queue.fresh(), size_t{0});
        QCOMPARE(job.queue.window(), size_t{1});
        ExchangeRequest again = lab.request(liar, 1);
        again.session[0] = 2;
        QVERIFY(lab.exchange(liar, again)->tasks.empty());
    }

    void it_is_given_up_in_whatever_words_data() {
        QTest::addColumn<int>("kind");
        QTest::newRow("handed back") << static_cast<int>(ResultKind::handed_back);
        QTest::newRow("failed") << static_cast<int>(ResultKind::failed);
    }
    void it_is_given_up_in_whatever_words() {
        QFETCH(const int, kind);
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::redundant);
        LiveComputer& liar = lab.join();
        const Grant lied = lab.take(liar)[0];
        lab.join();
        lab.tell(liar, FakeLab::commitment(lied, FakeLab::lie(lied)));
        lab.tell(liar, FakeLab::ending(lied, static_cast<ResultKind>(kind), "no driver"));
        QCOMPARE(lab.state(lied), AssignmentState::failed);
        QCOMPARE(job.queue.fresh(), size_t{0});
        QCOMPARE(job.queue.window(), size_t{1});
    }

    void who_is_sending_is_not_answered_again_and_again() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1, DType::i32, 8), Policy::recompute);
        LiveComputer& computer = lab.join();
        const Grant grant = lab.take(computer)[0];
        const ExchangeRequest commitment =
            lab.request(computer, 0, {FakeLab::commitment(grant, FakeLab::honest(grant))});
        lab.exchange(computer, commitment);
        QVERIFY(lab.asked(grant));
        ExchangeRequest waiting = lab.request(computer, 0);
        waiting.wait_ms = 30'000;
        const std::optional<ExchangeReply> told = lab.exchange(computer, waiting);
        if (told) {
            QCOMPARE(told->send.size(), size_t{1});
            QVERIFY(!lab.exchange(computer, waiting));
        }
        // Should the reply have been lost, it is told again.
        lab.pass_ms(6'000);
        const std::optional<ExchangeReply> again = lab.exchange(computer, waiting);
        QVERIFY(again);
        QCOMPARE(again->send.size(), size_t{1});
    }

    void a_newcomer_has_few_undecided_tasks() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1000), Policy::redundant);
        LiveComputer& newcomer = lab.join();
        size_t held = 0;
        for (int i = 0; i < 100; ++i)
            for (const Grant& grant : lab.take(newcomer)) {
                ++held;
                lab.tell(newcomer, FakeLab::commitment(grant, FakeLab::lie(grant)));
            }
        QVERIFY2(held <= 8, qPrintable(QString::number(held)));
    }

    void sending_has_the_time_of_a_transfer_not_of_the_computation() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& slow = lab.join_proven();
        const Grant grant = lab.take(slow)[0];
        const uint64_t duration_ms = lab.book.find(grant.assignment)->duration_ms;
        lab.pass_ms(20'000);
        lab.tell(slow, FakeLab::commitment(grant, FakeLab::lie(grant)));
        QVERIFY(lab.asked(grant));
        QVERIFY(lab.book.find(grant.assignment)->deadline_ms - lab.now_ms <= duration_ms);
        lab.pass_ms(35'000);
        QCOMPARE(lab.state(grant), AssignmentState::expired);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestCommitments)
#include "test_commitments.moc"
