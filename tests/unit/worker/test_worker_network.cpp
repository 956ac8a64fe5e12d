// Networks and labs that fail: lost replies, broken transfers, silence, overload.
#include <QtTest>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

class TestWorkerNetwork : public QObject {
    Q_OBJECT

  private slots:
    void a_lost_reply_is_made_good() {
        FakeLab lab;
        WorkerBench bench;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        lab.replies_to_lose = 2;
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(lab.assignment(id).times_committed, 1);
        std::map<uint64_t, int> times;
        for (const ExchangeRequest& exchange : lab.exchanges) ++times[exchange.sequence];
        QVERIFY(std::any_of(times.begin(), times.end(), [](const auto& entry) { return entry.second > 1; }));
    }

    void a_broken_download_goes_on_where_it_stopped() {
        FakeLab lab;
        WorkerBench bench;
        lab.cut_next_download = 2'500'000;  // past two leaves of four
        const AssignmentId id = lab.add_product(numbers({512, 2048}, 9), numbers({2048, 4}, 8));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        const bool resumed = std::any_of(lab.downloads.begin(), lab.downloads.end(),
                                         [](const auto& download) { return download.second == 2; });
        QVERIFY(resumed);
    }

    void a_broken_upload_goes_on_where_it_stopped() {
        FakeLab lab;
        WorkerBench bench;
        const AssignmentId id = lab.add_product(numbers({1024, 4}, 9), numbers({4, 1024}, 8));  // 4 MiB out
        lab.https.cut_request_after = 1'500'000;
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(lab.puts.size(), size_t{1});
        QCOMPARE(lab.puts[0].second, uint64_t{1});  // the first leaf had arrived
    }

    void wrong_bytes_are_not_computed_on_and_the_task_is_handed_back() {
        FakeLab lab;
        lab.sends_wrong_bytes = true;
        WorkerBench bench;
        const AssignmentId id = lab.add_product(wide(1), tall(2));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
        QCOMPARE(bench.mood->runs, 0);
    }

    void a_blob_that_the_lab_refuses_hands_the_task_back() {
        FakeLab lab;
        lab.refusals["/v1/blobs/"] = {404, "blob"};
        WorkerBench bench;
        const AssignmentId id = lab.add_product(wide(1), tall(2));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
    }

    void the_lab_may_go_away_and_come_back_while_work_goes_on() {
        FakeLab lab;
        WorkerBench bench;
        for (int i = 0; i < 5; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        bench.mood->takes_ms = 50;
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->runs >= 1);
        lab.https.go_away();
        EVENTUALLY(bench, bench.mood->runs == 5);
        lab.https.come_back();
        EVENTUALLY(bench, lab.count(State::agreed) == 5);
    }

    void a_dead_lab_does_not_keep_the_worker_from_its_other_labs() {
        FakeLab dead;
        FakeLab alive;
        WorkerBench bench;
        bench.start({dead.link(), alive.link()});
        EVENTUALLY(bench, !dead.exchanges.empty() && !alive.exchanges.empty());
        dead.https.silent = true;
        dead.https.break_connections();
        for (int i = 0; i < 10; ++i) {
            const AssignmentId id = alive.add_product(numbers({4, 4}, i), small_b(), true);
            QElapsedTimer timer;
            timer.start();
            EVENTUALLY(bench, alive.assignment(id).state == State::agreed);
            QVERIFY(timer.elapsed() < 5'000);
        }
    }

    void an_overloaded_lab_is_asked_again_only_after_the_time_it_names() {
        FakeLab lab;
        WorkerBench bench;
        lab.refusals["/v1/exchange"] = {503, "busy"};
        lab.refusal_fields = {"Retry-After: 3"};
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.logged("said the test"));
        const auto asked = [&] {
            return std::count_if(lab.https.requests.begin(), lab.https.requests.end(),
                                 [](const FakeRequest& r) { return r.target == "/v1/exchange"; });
        };
        QTest::qWait(2'000);
        QCOMPARE(asked(), 1);
        EVENTUALLY(bench, asked() == 2);
    }
};

QTEST_GUILESS_MAIN(TestWorkerNetwork)
#include "test_worker_network.moc"
