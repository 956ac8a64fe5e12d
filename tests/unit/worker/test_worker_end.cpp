// How a worker pauses, stops and ends.
#include <QtTest>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

class TestWorkerEnd : public QObject {
    Q_OBJECT

  private slots:
    void pausing_hands_everything_back_at_once_and_resuming_takes_work_again() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        for (int i = 0; i < 5; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        bench.running().pause("the owner is back");
        EVENTUALLY(bench, lab.count(State::ended) == 5);
        QCOMPARE(bench.mood->running, 0);
        EVENTUALLY(bench, lab.last_exchange().state == "paused" && lab.last_exchange().want.tasks == 0);
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        QTest::qWait(100);
        QCOMPARE(lab.assignment(id).state, State::issued);
        bench.mood->takes_ms = 0;
        bench.running().resume();
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
    }

    void stopping_finishes_what_runs_hands_back_the_rest_and_ends() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 300;
        for (int i = 0; i < 5; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        bench.running().stop("asked to");
        EVENTUALLY(bench, bench.exit_code == 0);
        QVERIFY(lab.count(State::ended) >= 3);
        QCOMPARE(lab.count(State::ended) + lab.count(State::committed) + lab.count(State::agreed), size_t{5});
    }

    void a_task_that_does_not_finish_in_time_is_handed_back_when_stopping() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.finish_ms = 100;
        bench.mood->takes_ms = 60'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        bench.running().stop("asked to");
        EVENTUALLY(bench, bench.exit_code == 0);
        QCOMPARE(lab.assignment(id).state, State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
    }

    void a_second_request_to_stop_ends_at_once_and_what_ran_does_not_count_as_tried() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        const InvitationLink link = lab.link();
        for (int i = 0; i < 3; ++i) {
            bench.start({link});
            EVENTUALLY(bench, bench.mood->running == 1);
            bench.running().stop("asked to");
            bench.running().stop("asked to");
            EVENTUALLY(bench, bench.exit_code == 1);
            bench.end();
        }
        QCOMPARE(lab.assignment(id).state, State::issued);
    }

    void an_ephemeral_worker_waits_for_the_lab_to_ask_for_what_it_committed_to() {
        FakeLab lab;
        lab.asks_for_outputs = false;
        lab.decides = false;
        WorkerBench bench;
        bench.settings.ephemeral = true;
        bench.settings.finish_ms = 60'000;
        const AssignmentId small = lab.add_product(small_a(), small_b(), true);
        const AssignmentId large = lab.add_product(large_a(), large_b());
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::committed) == 2);
        bench.running().stop("asked to");
        EVENTUALLY(bench, lab.last_exchange().state == "stopping" && lab.last_exchange().wait_ms > 0);
        QVERIFY(!bench.exit_code);
        lab.asks_for_outputs = true;
        lab.decides = true;
        lab.look();
        EVENTUALLY(bench, bench.exit_code == 0);
        QCOMPARE(lab.assignment(small).state, State::agreed);
        QCOMPARE(lab.assignment(large).state, State::agreed);
    }

    void an_ephemeral_worker_gives_up_what_no_lab_asks_for_within_the_time_to_finish() {
        FakeLab lab;
        lab.asks_for_outputs = false;
        lab.decides = false;
        WorkerBench bench;
        bench.settings.ephemeral = true;
        bench.settings.finish_ms = 300;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::committed);
        bench.running().stop("asked to");
        EVENTUALLY(bench, bench.exit_code == 0);
        QCOMPARE(lab.assignment(id).state, State::ended);
        QCOMPARE(lab.assignment(id).reason, std::string("the worker stops for good"));
    }

    void an_ephemeral_worker_does_not_wait_for_the_verdict_on_numbers_that_have_arrived() {
        FakeLab lab;
        lab.decides = false;
        WorkerBench bench;
        bench.settings.ephemeral = true;
        bench.settings.finish_ms = 3'600'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::returned);
        bench.running().stop("asked to");
        EVENTUALLY(bench, bench.exit_code == 0);
        QCOMPARE(lab.assignment(id).state, State::returned);
    }

    void an_idle_worker_ends_after_its_time() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.max_idle_ms = 1'500;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        EVENTUALLY(bench, bench.exit_code == 0);
        QVERIFY(bench.logged("no task for 1.5 s"));
    }

    void a_worker_drains_before_the_end_of_its_life() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.max_lifetime_ms = 4'000;
        bench.mood->takes_ms = 100;
        for (int i = 0; i < 200; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        QElapsedTimer timer;
        bench.start({lab.link()});
        timer.start();
        EVENTUALLY(bench, bench.exit_code == 0);
        QVERIFY2(timer.elapsed() < 5'000, qPrintable(QString::number(timer.elapsed())));
        QVERIFY(bench.logged("takes no more tasks"));
        QVERIFY(lab.count(State::agreed) > 0);
        QVERIFY(lab.count(State::ended) > 0);
    }
};

QTEST_GUILESS_MAIN(TestWorkerEnd)
#include "test_worker_end.moc"
