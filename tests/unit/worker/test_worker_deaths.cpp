// What a worker that was killed finds in its directory, and what it makes of it.
#include <QtTest>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

class TestWorkerDeaths : public QObject {
    Q_OBJECT

  private slots:
    void after_a_death_the_open_tasks_are_still_there() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const InvitationLink link = lab.link();
        for (int i = 0; i < 50; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        bench.start({link});
        EVENTUALLY(bench, bench.mood->running == 1);
        bench.die();
        bench.mood->takes_ms = 0;
        bench.start({link});
        EVENTUALLY(bench, lab.count(State::agreed) == 50);
    }

    void a_task_during_which_the_worker_died_twice_has_failed_and_no_other() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const InvitationLink link = lab.link();
        for (int i = 0; i < 50; ++i) lab.add_product(numbers({4, 4}, i), small_b(), true);
        for (int death = 0; death < 2; ++death) {
            bench.start({link});
            EVENTUALLY(bench, bench.mood->running == 1);
            bench.die();
        }
        bench.mood->takes_ms = 0;
        bench.start({link});
        EVENTUALLY(bench, lab.count(State::agreed) == 49);
        QCOMPARE(lab.count(State::ended), size_t{1});
        AssignmentId first{};
        first[0] = 1;
        QCOMPARE(lab.assignment(first).reason, std::string("the worker died twice computing it"));
        QCOMPARE(lab.assignment(first).end_kind, ResultKind::failed);
    }

    void committed_outputs_survive_a_death_and_are_not_computed_again() {
        FakeLab lab;
        WorkerBench bench;
        lab.asks_for_outputs = false;
        lab.decides = false;
        const InvitationLink link = lab.link();
        const AssignmentId large = lab.add_product(numbers({300, 4}, 9), numbers({4, 300}, 8), true);
        const AssignmentId small = lab.add_product(small_a(), small_b(), true);
        bench.start({link});
        EVENTUALLY(bench, lab.count(State::committed) == 2);
        EVENTUALLY(bench, lab.last_exchange().holding.size() == 2);
        bench.die();
        lab.asks_for_outputs = true;
        lab.decides = true;
        bench.start({link});
        EVENTUALLY(bench, lab.assignment(large).state == State::agreed &&
                              lab.assignment(small).state == State::agreed);
        QCOMPARE(bench.mood->runs, 2);
    }

    void outputs_damaged_on_the_disk_are_computed_again_not_sent() {
        FakeLab lab;
        WorkerBench bench;
        lab.asks_for_outputs = false;
        lab.decides = false;
        const InvitationLink link = lab.link();
        const AssignmentId id = lab.add_product(numbers({300, 4}, 9), numbers({4, 300}, 8), true);
        bench.start({link});
        EVENTUALLY(bench, lab.count(State::committed) == 1);
        bench.die();
        for (const auto& file : std::filesystem::directory_iterator(bench.lab_folder(lab) / "outputs")) {
            const File damaged = File::open_to_write(file.path());
            const std::byte zero{0x55};
            damaged.write_at(1000, std::span(&zero, 1));
        }
        lab.asks_for_outputs = true;
        lab.decides = true;
        bench.start({link});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QCOMPARE(bench.mood->runs, 2);
    }

    void a_download_goes_on_after_a_death() {
        FakeLab lab;
        WorkerBench bench;
        const InvitationLink link = lab.link();
        lab.cut_next_download = 2'500'000;
        const AssignmentId id = lab.add_product(numbers({512, 2048}, 9), numbers({2048, 4}, 8));
        bench.start({link});
        EVENTUALLY(bench, bench.logged("was interrupted"));
        bench.die();
        bench.start({link});
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QVERIFY(std::any_of(lab.downloads.begin(), lab.downloads.end(),
                            [](const auto& download) { return download.second > 0; }));
    }
};

QTEST_GUILESS_MAIN(TestWorkerDeaths)
#include "test_worker_deaths.moc"
