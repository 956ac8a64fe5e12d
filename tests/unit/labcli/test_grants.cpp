// Who gets how many tasks of an exchange, and which.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestGrants : public QObject {
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
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestGrants)
#include "test_grants.moc"
