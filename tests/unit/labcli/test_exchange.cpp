// An exchange: who gets how many tasks, what is told about results, deadlines, lost replies, sessions.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestExchange : public QObject {
    Q_OBJECT

  private slots:
    // ---- how many tasks
    void a_newcomer_gets_one_task_until_a_result_of_it_was_verified() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& newcomer = lab.join();
        newcomer.quota = limits::open_assignments;
        const std::vector<Grant> first = lab.take(newcomer, 50);
        QCOMPARE(first.size(), size_t{1});
        QVERIFY(lab.take(newcomer, 50).empty());
        lab.do_honestly(newcomer, first);
        QVERIFY(lab.take(newcomer, 50).size() > 1);
    }

    void the_quota_doubles_with_each_agreed_result_up_to_the_limit() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2000), Policy::recompute);
        LiveComputer& computer = lab.join();
        for (const uint64_t expected : {1, 2, 4, 8}) {
            QCOMPARE(computer.quota, expected);
            lab.do_honestly(computer, lab.take(computer, 1));
        }
        for (int i = 0; i < 8; ++i) lab.do_honestly(computer, lab.take(computer, 1));
        QCOMPARE(computer.quota, limits::open_assignments);
        QCOMPARE(lab.take(computer, 1000).size(), size_t{limits::open_assignments});
        QVERIFY(lab.take(computer, 1000).empty());
    }

    void a_convicted_computer_has_its_quota_halved_and_waits() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& liar = lab.join_proven(16);
        lab.do_with(liar, lab.take(liar, 1), FakeLab::lie);
        QCOMPARE(liar.quota, uint64_t{8});
        QVERIFY(lab.take(liar, 1).empty());
        lab.pass_ms(1'500);
        QCOMPARE(lab.take(liar, 100).size(), size_t{8});
    }

    void who_fails_everything_at_once_gets_few_tasks() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1000), Policy::recompute);
        LiveComputer& broken = lab.join_proven();
        uint64_t given = 0;
        for (int second = 0; second < 600; ++second) {
            for (const Grant& grant : lab.take(broken, 1)) {
                ++given;
                lab.tell(broken, FakeLab::ending(grant, ResultKind::failed, "no driver"));
            }
            lab.pass_ms(1'000);
        }
        QVERIFY2(given <= 12, qPrintable(QString::number(given)));
        QCOMPARE(lab.contributors.volunteer(broken.record.volunteer).failed, given);
    }

    void a_pile_of_late_tasks_counts_as_one_error() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& computer = lab.join_proven(64);
        QCOMPARE(lab.take(computer, 64).size(), size_t{64});
        lab.pass_ms(40'000);
        QCOMPARE(computer.quota, uint64_t{32});
        QVERIFY(computer.no_tasks_before_ms <= lab.now_ms + 1'000);
    }

    void who_hands_tasks_back_to_draw_others_waits_longer_each_time() {
        // Handing back costs nothing otherwise, and conspirators could look for their friends' tasks by it.
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1000), Policy::redundant);
        LiveComputer& picky = lab.join_proven();
        uint64_t draws = 0;
        for (int second = 0; second < 60; ++second) {
            for (const Grant& grant : lab.take(picky, 1)) {
                ++draws;
                lab.tell(picky, FakeLab::ending(grant, ResultKind::handed_back));
            }
            lab.pass_ms(1'000);
        }
        QVERIFY2(draws <= 7, qPrintable(QString::number(draws)));
        QCOMPARE(lab.contributors.volunteer(picky.record.volunteer).failed, uint64_t{0});
    }

    void a_pause_that_hands_many_tasks_back_costs_a_second() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        std::vector<Result> all;
        for (const Grant& grant : lab.take(computer, 50))
            all.push_back(FakeLab::ending(grant, ResultKind::handed_back));
        lab.exchange(computer, lab.request(computer, 0, all));
        lab.pass_ms(1'500);
        QCOMPARE(lab.take(computer, 50).size(), size_t{50});
    }

    void nothing_is_granted_beyond_what_is_wanted() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        QVERIFY(lab.take(computer, 0).empty());
        QCOMPARE(lab.take(computer, 3).size(), size_t{3});
        ExchangeRequest little = lab.request(computer, 50);
        little.want.work_ms = 0;
        QCOMPARE(lab.exchange(computer, little)->tasks.size(), size_t{1});
    }

    void no_device_no_task() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10), Policy::recompute);
        LiveComputer& computer = lab.join();
        ExchangeRequest request = lab.request(computer, 1);
        request.want.devices.clear();
        QVERIFY(lab.exchange(computer, request)->tasks.empty());
    }

    void tasks_go_only_where_they_can_be_computed() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10, DType::f32), Policy::recompute);
        LiveComputer& computer = lab.join();
        ExchangeRequest request = lab.request(computer, 1);
        request.want.devices[0].takes_floats = false;
        QVERIFY(lab.exchange(computer, request)->tasks.empty());
        request.want.devices[0].takes_floats = true;
        request.want.devices[0].memory_bytes = 16;
        QVERIFY(lab.exchange(computer, request)->tasks.empty());
        request.want.devices[0].memory_bytes = 1 << 20;
        QCOMPARE(lab.exchange(computer, request)->tasks.size(), size_t{1});
    }

    void a_lab_short_of_disk_hands_nothing_out_and_says_so() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(10), Policy::recompute);
        LiveComputer& computer = lab.join();
        lab.board.hold_back("waiting for disk space");
        const ExchangeReply reply = *lab.exchange(computer, lab.request(computer, 1));
        QVERIFY(reply.tasks.empty());
        QCOMPARE(reply.notice, std::string("waiting for disk space"));
        QVERIFY(reply.wait_ms >= 1'000);
    }

    // ---- who may have which task
    void a_second_replica_never_goes_to_the_same_volunteer() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3), Policy::redundant);
        LiveComputer& one = lab.join_proven();
        QCOMPARE(lab.take(one, 10).size(), size_t{3});
        QVERIFY(lab.take(one, 10).empty());
        LiveComputer& two = lab.join_proven();
        QCOMPARE(lab.take(two, 10).size(), size_t{3});
        LiveComputer& three = lab.join_proven();
        QVERIFY(lab.take(three, 10).empty());
    }

    void a_second_replica_never_goes_to_the_same_network() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3), Policy::redundant);
        LiveComputer& one = lab.join_proven();
        LiveComputer& neighbour = lab.join_proven();
        LiveComputer& far = lab.join_proven();
        one.peer.address = "192.0.2.1";
        neighbour.peer.address = "192.0.2.2";
        far.peer.address = "198.51.100.1";
        QCOMPARE(lab.take(one, 10).size(), size_t{3});
        QVERIFY(lab.take(neighbour, 10).empty());
        QCOMPARE(lab.take(far, 10).size(), size_t{3});
    }

    void a_setting_lifts_that_rule_for_one_network() {
        FakeLab lab(1, {.spread_over_networks = false});
        lab.submit(std::make_shared<FakePlan>(3), Policy::redundant);
        LiveComputer& one = lab.join_proven();
        LiveComputer& neighbour = lab.join_proven();
        one.peer.address = "192.0.2.1";
        neighbour.peer.address = "192.0.2.2";
        QCOMPARE(lab.take(one, 10).size(), size_t{3});
        QCOMPARE(lab.take(neighbour, 10).size(), size_t{3});
    }

    void who_failed_a_task_does_not_get_it_again_at_once() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& one = lab.join();
        lab.tell(one, FakeLab::ending(lab.take(one)[0], ResultKind::failed, "broken"));
        lab.pass_ms(1'200);
        QVERIFY(lab.take(one).empty());
        LiveComputer& other = lab.join();
        QCOMPARE(lab.take(other).size(), size_t{1});
    }

    void one_contributor_alone_gets_a_failed_task_again_after_a_while() {
        FakeLab lab;
        Job& job = lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        LiveComputer& one = lab.join();
        lab.tell(one, FakeLab::ending(lab.take(one)[0], ResultKind::failed, "out of memory for a moment"));
        std::vector<Grant> again;
        for (int second = 0; second < 20 && again.empty(); ++second) {
            lab.pass_ms(1'000);
            again = lab.take(one);
        }
        QCOMPARE(again.size(), size_t{1});
        lab.do_honestly(one, again);
        QVERIFY(job.record.state == JobState::done);
    }

    // ---- deadlines
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
            QVERIFY(refusal.error.message.find("join with a new invitation") != std::string::npos);
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

    // ---- blobs
    void an_upload_is_taken_only_for_what_was_committed_and_asked_for() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant grant = lab.take(one)[0];
        const Digest digest = tensor_digest(grant.key, FakeLab::honest(grant));
        QVERIFY(!lab.desk.find_upload(one, digest));
        lab.tell(one, FakeLab::commitment(grant, FakeLab::honest(grant)));
        const auto place = lab.desk.find_upload(one, digest);
        QVERIFY(place && place->asked && !place->complete);
        QVERIFY(!lab.desk.find_upload(two, digest));
        QVERIFY(!lab.desk.take_upload(two, *place, {FakeLab::honest(grant), nullptr}).empty());
        QCOMPARE(lab.desk.take_upload(one, *place, {FakeLab::honest(grant), nullptr}), std::string());
        QCOMPARE(lab.desk.take_upload(one, *place, {FakeLab::honest(grant), nullptr}),
                 std::string("the numbers had arrived before"));
        lab.run();
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
        QVERIFY(!lab.desk.find_upload(one, digest));
    }

    void equal_outputs_of_one_task_arrive_by_one_upload() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        plan->copies = 3;
        lab.submit(plan, Policy::recompute);
        LiveComputer& one = lab.join();
        const Grant grant = lab.take(one)[0];
        const Tensor numbers = FakeLab::honest(grant);
        Result commitment = FakeLab::commitment(grant, numbers);
        const Digest digest = commitment.digests[0];
        commitment.digests.assign(3, digest);
        lab.tell(one, commitment);
        const auto place = lab.desk.find_upload(one, digest);
        QVERIFY(place && place->asked && !place->complete);
        QCOMPARE(place->outputs, (std::vector<size_t>{0, 1, 2}));
        QCOMPARE(lab.desk.take_upload(one, *place, {numbers.clone(), nullptr}), std::string());
        lab.run();
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
        QVERIFY(plan->merged.at(0).same_bits(numbers));
    }

    void an_output_that_arrived_while_others_are_missing_is_complete() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        plan->copies = 2;
        lab.submit(plan, Policy::recompute);
        LiveComputer& liar = lab.join();
        const Grant grant = lab.take(liar)[0];
        Result commitment = FakeLab::commitment(grant, FakeLab::honest(grant));
        commitment.digests.push_back(tensor_digest(grant.key, FakeLab::lie(grant)));
        lab.tell(liar, commitment);
        const auto place = lab.desk.find_upload(liar, commitment.digests[0]);
        QVERIFY(place);
        QCOMPARE(lab.desk.take_upload(liar, *place, {FakeLab::honest(grant), nullptr}), std::string());
        QVERIFY(lab.desk.find_upload(liar, commitment.digests[0])->complete);
        QVERIFY(!lab.desk.take_upload(liar, *place, {FakeLab::honest(grant), nullptr}).empty());
        QVERIFY(!lab.desk.find_upload(liar, commitment.digests[1])->complete);
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
