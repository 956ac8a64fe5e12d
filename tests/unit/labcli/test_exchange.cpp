// An exchange: lost replies, look-ups, sessions, waiting, who is sent away.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestExchange : public QObject {
    Q_OBJECT

  private slots:
    // ---- lost replies
    void tasks_of_a_lost_reply_are_granted_again() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        const std::vector<Grant> lost = lab.take(computer, 3);
        ExchangeRequest request = lab.request(computer, 3);
        request.holding.clear();
        const std::vector<Grant> again = lab.exchange(computer, request)->tasks;
        QCOMPARE(ids(again), ids(lost));
        QVERIFY(std::equal(
            again.begin(), again.end(), lost.begin(), lost.end(), [&](const Grant& a, const Grant& b) {
                return std::any_of(
                           lost.begin(), lost.end(),
                           [&](const Grant& c) { return c.assignment == a.assignment && c.key == a.key; }) &&
                       a.duration_ms == b.duration_ms;
            }));
    }

    void a_lost_grant_is_repeated_although_something_unknown_is_held() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        const std::vector<Grant> lost = lab.take(computer, 1);
        ExchangeRequest request = lab.request(computer, 0);
        request.holding = {AssignmentId{42}};
        const ExchangeReply reply = *lab.exchange(computer, request);
        QCOMPARE(ids(reply.tasks), ids(lost));
        QCOMPARE(reply.cancel.size(), size_t{1});
    }

    void what_is_granted_again_fits_into_one_reply() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(300, DType::i32, 60, 250),
                   Policy::recompute);  // 2 × 60 kB each
        LiveComputer& computer = lab.join_proven();
        while (!lab.take(computer, 256).empty()) {
        }
        QCOMPARE(computer.open.size(), size_t{256});
        std::vector<AssignmentId> known;
        for (int round = 0; round < 10 && known.size() < 256; ++round) {
            ExchangeRequest request = lab.request(computer, 0);
            request.holding = known;
            const ExchangeReply reply = *lab.exchange(computer, request);
            QVERIFY(encode_message(reply).size() <= limits::exchange_bytes);
            for (const Grant& grant : reply.tasks) known.push_back(grant.assignment);
        }
        QCOMPARE(known.size(), size_t{256});
    }

    void results_sent_again_are_acknowledged_and_not_counted_twice() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& computer = lab.join();
        const Grant grant = lab.take(computer)[0];
        const Tensor numbers = FakeLab::honest(grant);
        QCOMPARE(lab.tell(computer, FakeLab::commitment(grant, numbers)).kind, ReceiptKind::taken);
        QCOMPARE(lab.tell(computer, FakeLab::commitment(grant, numbers)).kind, ReceiptKind::repeated);
        QCOMPARE(lab.tell(computer, FakeLab::data(grant, numbers)).kind, ReceiptKind::taken);
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
        QCOMPARE(lab.tell(computer, FakeLab::data(grant, numbers)).kind, ReceiptKind::repeated);
        QCOMPARE(lab.tell(computer, FakeLab::commitment(grant, numbers)).kind, ReceiptKind::repeated);
        QCOMPARE(lab.contributors.volunteer(computer.record.volunteer).agreed, uint64_t{1});
    }

    void verdicts_are_told_until_the_worker_no_longer_lists_the_assignment() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& computer = lab.join();
        const Grant grant = lab.take(computer)[0];
        lab.do_honestly(computer, {grant});
        for (int i = 0; i < 2; ++i) {
            ExchangeRequest request = lab.request(computer, 0);
            request.holding = {grant.assignment};
            const ExchangeReply reply = *lab.exchange(computer, request);
            QCOMPARE(reply.decided.size(), size_t{1});
            QVERIFY(reply.decided[0].agreed);
            QVERIFY(reply.decided[0].credit_flops > 0);
        }
        QVERIFY(lab.exchange(computer, lab.request(computer, 0))->decided.empty());
        QVERIFY(computer.decided.empty());
    }

    // ---- look-ups, which all contributors wait for
    void ids_that_the_lab_never_gave_are_not_looked_up() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& computer = lab.join();
        lab.take(computer);
        ExchangeRequest request = lab.request(computer, 0);
        for (uint64_t number = 2; number < 2 + limits::exchange_results; ++number) {
            Result& result = request.results.emplace_back();
            result.assignment = make_assignment_id(number);
            if (request.holding.size() < limits::open_assignments)
                request.holding.push_back(result.assignment);
        }
        const ExchangeReply reply = *lab.exchange(computer, request);
        QCOMPARE(lab.look_ups, uint64_t{0});
        QCOMPARE(reply.acknowledged.size(), size_t{limits::exchange_results});
        QVERIFY(std::all_of(reply.acknowledged.begin(), reply.acknowledged.end(),
                            [](const Receipt& receipt) { return receipt.kind == ReceiptKind::refused; }));
        QVERIFY(reply.cancel.size() >= limits::open_assignments - 1);
    }

    void one_exchange_has_few_look_ups_and_what_it_was_not_told_it_hears_in_the_next() {
        FakeLab lab;
        constexpr size_t count = ExchangeDesk::look_ups_per_exchange + 20;
        lab.submit(std::make_shared<FakePlan>(count), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        std::vector<Result> told;
        while (told.size() < count) {
            const std::vector<Grant> grants = lab.take(computer, 100);
            QVERIFY(!grants.empty());
            for (const Grant& grant : grants)
                told.push_back(FakeLab::commitment(grant, FakeLab::honest(grant)));
            lab.do_honestly(computer, grants);
        }
        // All of it again, as after lost replies, and by a computer that still holds all that it may.
        ExchangeRequest request = lab.request(computer, 0, told);
        for (size_t i = 0; i < limits::open_assignments; ++i) request.holding.push_back(told[i].assignment);
        lab.look_ups = 0;
        std::set<AssignmentId> acknowledged;
        std::set<AssignmentId> decided;
        for (int exchanges = 1; acknowledged.size() < count || decided.size() < limits::open_assignments;
             ++exchanges) {
            QVERIFY2(exchanges <= 4, "expected each exchange to come further");
            const ExchangeReply reply = *lab.exchange(computer, request);
            QVERIFY(lab.look_ups <= exchanges * ExchangeDesk::look_ups_per_exchange);
            for (const Receipt& receipt : reply.acknowledged) {
                QCOMPARE(receipt.kind, ReceiptKind::repeated);
                acknowledged.insert(receipt.assignment);
                std::erase_if(request.results,
                              [&](const Result& result) { return result.assignment == receipt.assignment; });
            }
            for (const Decision& decision : reply.decided) decided.insert(decision.assignment);
        }
    }

    // ---- sessions
    void of_two_copies_of_a_directory_the_older_is_told() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10), Policy::recompute);
        LiveComputer& computer = lab.join();
        lab.take(computer);
        ExchangeRequest copy = lab.request(computer, 1);
        copy.session[0] = 2;
        copy.holding.clear();
        QCOMPARE(lab.exchange(computer, copy)->tasks.size(),
                 size_t{1});  // the same task: one volunteer, one task
        QCOMPARE(computer.open.size(), size_t{1});
        try {
            lab.exchange(computer, lab.request(computer, 1));
            QFAIL("expected a refusal");
        } catch (const Refusal& refusal) {
            QCOMPARE(refusal.status, 409);
            QCOMPARE(refusal.error.code, std::string("copied"));
            QVERIFY(refusal.error.message.find("a new invitation link") != std::string::npos);
        }
        QCOMPARE(lab.exchange(computer, copy)->tasks.size(), size_t{1});
    }

    void a_new_session_forgets_claimed_blobs() {
        FakeLab lab;
        LiveComputer& computer = lab.join();
        ExchangeRequest request = lab.request(computer, 0);
        request.want.blobs_added = {sha256(Bytes{1}), sha256(Bytes{2})};
        lab.exchange(computer, request);
        QCOMPARE(computer.blobs.size(), size_t{2});
        request = lab.request(computer, 0);
        request.want.blobs_removed = {sha256(Bytes{1})};
        lab.exchange(computer, request);
        QCOMPARE(computer.blobs.size(), size_t{1});
        request.session[0] = 2;
        lab.exchange(computer, request);
        QVERIFY(computer.blobs.empty());
    }

    // ---- waiting
    void with_nothing_to_say_the_answer_waits() {
        FakeLab lab;
        LiveComputer& computer = lab.join();
        std::optional<ExchangeReply> reply;
        ExchangeRequest request = lab.request(computer, 1);
        request.wait_ms = 10'000;
        lab.desk.exchange(computer, {}, request,
                          [&](Answer<ExchangeReply> answer) { reply = std::get<ExchangeReply>(answer); });
        lab.pass_ms(5'000);
        QVERIFY(!reply);
        lab.submit(std::make_shared<FakePlan>(3), Policy::recompute);
        lab.pass_ms(500);
        QVERIFY(reply);
        QCOMPARE(reply->tasks.size(), size_t{1});
    }

    void a_waiting_answer_comes_in_time_although_there_is_nothing() {
        FakeLab lab;
        LiveComputer& computer = lab.join();
        std::optional<ExchangeReply> reply;
        ExchangeRequest request = lab.request(computer, 1);
        request.wait_ms = 1'000'000;
        lab.desk.exchange(computer, {}, request,
                          [&](Answer<ExchangeReply> answer) { reply = std::get<ExchangeReply>(answer); });
        lab.pass_ms(limits::exchange_wait_ms + 1'000);
        QVERIFY(reply);
    }

    void a_second_exchange_releases_the_first() {
        FakeLab lab;
        LiveComputer& computer = lab.join();
        int answered = 0;
        ExchangeRequest request = lab.request(computer, 1);
        request.wait_ms = 10'000;
        for (int i = 0; i < 2; ++i)
            lab.desk.exchange(computer, {}, request, [&](const Answer<ExchangeReply>&) { ++answered; });
        QCOMPARE(answered, 1);
        lab.desk.release_waiting();
        QCOMPARE(answered, 2);
    }

    void who_is_asked_to_send_hears_it_while_it_waits() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant first = lab.take(one)[0];
        const Grant second = lab.take(two)[0];
        lab.tell(one, FakeLab::commitment(first, FakeLab::honest(first)));
        std::optional<ExchangeReply> reply;
        ExchangeRequest request = lab.request(one, 0);
        request.wait_ms = 30'000;
        lab.desk.exchange(one, {}, request,
                          [&](Answer<ExchangeReply> answer) { reply = std::get<ExchangeReply>(answer); });
        lab.tell(two, FakeLab::commitment(second, FakeLab::lie(second)));
        if (lab.asked(second))
            lab.tell(two, FakeLab::data(second, FakeLab::lie(second)));  // the dispute asks the first, too
        lab.pass_ms(500);
        QVERIFY(reply);
        QCOMPARE(reply->send, std::vector<AssignmentId>{first.assignment});
    }

    // ---- who is sent away
    void a_banned_computers_tasks_go_to_others() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& banned = lab.join_proven();
        const std::vector<Grant> had = lab.take(banned, 2);
        lab.contributors.set_state(banned, MemberState::banned);
        lab.desk.drop_assignments(banned, "banned");
        QVERIFY(banned.open.empty());
        QCOMPARE(lab.state(had[0]), AssignmentState::cancelled);
        LiveComputer& other = lab.join_proven();
        QCOMPARE(lab.take(other, 2).size(), size_t{2});
    }

  private:
    static std::set<AssignmentId> ids(const std::vector<Grant>& grants) {
        std::set<AssignmentId> all;
        for (const Grant& grant : grants) all.insert(grant.assignment);
        return all;
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestExchange)
#include "test_exchange.moc"
