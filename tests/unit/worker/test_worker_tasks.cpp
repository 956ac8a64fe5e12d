// What becomes of tasks: computed, failed, handed back, cancelled.
#include <QtTest>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

class TestWorkerTasks : public QObject {
    Q_OBJECT

  private slots:
    void a_link_leads_to_work_and_the_right_bits_inline() {
        FakeLab lab;
        WorkerBench bench;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(lab.downloads.size(), size_t{0});
        QCOMPARE(lab.puts.size(), size_t{0});
    }

    void large_inputs_are_fetched_and_large_outputs_uploaded() {
        FakeLab lab;
        WorkerBench bench;
        const AssignmentId id = lab.add_product(large_a(), large_b());
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(lab.downloads.size(), size_t{2});
        QCOMPARE(lab.puts.size(), size_t{1});
        EVENTUALLY(bench, bench.session().work().book().size() == 0);
        QVERIFY(std::filesystem::is_empty(bench.lab_folder(lab) / "outputs"));
    }

    void an_input_that_serves_two_tasks_is_fetched_once_and_the_lab_is_told_what_is_held() {
        FakeLab lab;
        WorkerBench bench;
        lab.add_product(wide(1), tall(2));
        lab.add_product(wide(1), tall(3));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::agreed) == 2);
        const Digest shared = tensor_digest({}, wide(1));
        QCOMPARE(lab.downloads_of(shared), uint64_t{1});
        std::set<Digest> told;
        for (const ExchangeRequest& exchange : lab.exchanges)
            told.insert(exchange.want.blobs_added.begin(), exchange.want.blobs_added.end());
        QVERIFY(told.contains(shared));
    }

    void the_same_blob_may_be_both_operands() {
        FakeLab lab;
        WorkerBench bench;
        const Tensor square = numbers({200, 200}, 5);
        const AssignmentId id = lab.add_product(square, square);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(lab.downloads.size(), size_t{1});
    }

    void many_small_tasks_share_exchanges() {
        FakeLab lab;
        WorkerBench bench;
        for (int i = 0; i < 100; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::agreed) == 100);
        QVERIFY2(lab.exchanges.size() < 100, qPrintable(QString::number(lab.exchanges.size())));
    }

    void a_task_that_makes_no_sense_fails_with_the_reason() {
        FakeLab lab;
        WorkerBench bench;
        TaskMessage nonsense;
        nonsense.contract = contract_version;
        nonsense.nodes.push_back({"no such operator", {0, 1}});
        nonsense.outputs = {0};
        const AssignmentId id = lab.add_task(nonsense);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::failed);
        QVERIFY(lab.assignment(id).reason.find("operator of the catalogue") != std::string::npos);
        const AssignmentId good = lab.add_product(small_a(), small_b(), true);
        EVENTUALLY(bench, lab.assignment(good).state == State::agreed);
    }

    void a_task_beyond_the_memory_limit_is_handed_back_before_anything_is_fetched() {
        FakeLab lab;
        WorkerBench bench;
        bench.memory_bytes = 1 << 20;
        const AssignmentId id = lab.add_product(wide(1), tall(2));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
        QVERIFY(lab.assignment(id).reason.find("--memory") != std::string::npos);
        QCOMPARE(lab.downloads.size(), size_t{0});
        QCOMPARE(lab.last_exchange().want.devices.at(0).memory_bytes, uint64_t{1} << 20);
    }

    void inputs_beyond_the_disk_limit_are_handed_back() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.disk_bytes = 1 << 20;
        const AssignmentId id = lab.add_product(wide(1), tall(2));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QVERIFY(lab.assignment(id).reason.find("--disk") != std::string::npos);
    }

    void more_tasks_than_the_disk_holds_at_once_are_done_one_after_another() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.disk_bytes = 10 << 20;  // the inputs of one task, and the journal
        for (int i = 0; i < 4; ++i) lab.add_product(wide(i), tall(i));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::agreed) == 4);
        uint64_t bytes = 0;
        for (const auto& file : std::filesystem::directory_iterator(bench.lab_folder(lab) / "blobs"))
            bytes += file.file_size();
        QVERIFY(bytes <= 10 << 20);
    }

    void a_cancelled_task_is_stopped_and_dropped() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        lab.cancel(id, "not needed any more");
        EVENTUALLY(bench, bench.mood->running == 0);
        EVENTUALLY(bench, bench.session().work().book().size() == 0);
        bench.mood->takes_ms = 0;
        const AssignmentId next = lab.add_product(small_a(), small_b(), true);
        EVENTUALLY(bench, lab.assignment(next).state == State::agreed);
    }

    void a_task_that_takes_four_times_its_duration_is_stopped_and_has_failed() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true, 50);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::failed);
        QVERIFY(lab.assignment(id).reason.find("four times") != std::string::npos);
    }

    void a_failure_of_the_engine_is_told_with_its_reason() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->fails = true;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::failed);
        QCOMPARE(lab.assignment(id).reason, std::string("the test's engine fails"));
    }

    void what_the_lab_says_is_shown_as_plain_text() {
        FakeLab lab;
        lab.notice = "\x1b[31mno work\x1b[0m\nfake line";
        lab.asks_for_outputs = false;
        WorkerBench bench;
        lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.logged("no work"));
        QVERIFY(!bench.logged("\x1b"));
        QVERIFY(bench.logged("\\x1b[31mno work\\x1b[0m\\x0afake line"));
    }
};

QTEST_GUILESS_MAIN(TestWorkerTasks)
#include "test_worker_tasks.moc"
