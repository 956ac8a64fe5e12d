// A disk that is full while inputs arrive or outputs are stored: tasks are handed back with the reason,
// nothing is lost, and work goes on once there is room.
#include <sys/resource.h>

#include <QtTest>
#include <csignal>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

namespace {

// No file of this process may grow beyond that, as if the disk were full.
class TightDisk {
  public:
    explicit TightDisk(rlim_t largest_bytes) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit tight{largest_bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
    }
    ~TightDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

  private:
    rlimit before_{};
};

}  // namespace

class TestWorkerDisk : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { std::signal(SIGXFSZ, SIG_IGN); }

    void a_full_disk_while_inputs_arrive() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.disk_rest_ms = 500;
        AssignmentId first{};
        {
            const TightDisk disk(2'000'000);
            first = lab.add_product(wide(1), tall(2));
            bench.start({lab.link()});
            EVENTUALLY(bench, lab.assignment(first).state == State::ended);
            EVENTUALLY(bench, lab.last_exchange().state == "disk full");
        }
        QCOMPARE(lab.assignment(first).end_kind, ResultKind::handed_back);
        QVERIFY2(lab.assignment(first).reason.find("expected room for") != std::string::npos,
                 lab.assignment(first).reason.c_str());
        QVERIFY(bench.logged("takes no tasks for 500 ms"));
        const AssignmentId next = lab.add_product(wide(1), tall(2));
        EVENTUALLY(bench, lab.assignment(next).state == State::agreed);
    }

    void a_full_disk_while_an_output_is_stored() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.disk_rest_ms = 500;
        AssignmentId first{};
        {
            const TightDisk disk(300'000);
            first = lab.add_product(numbers({300, 2}, 1), numbers({2, 300}, 2), true);  // 360,000 bytes out
            bench.start({lab.link()});
            EVENTUALLY(bench, lab.assignment(first).state == State::ended);
        }
        QCOMPARE(lab.assignment(first).end_kind, ResultKind::handed_back);
        QVERIFY(std::filesystem::is_empty(bench.lab_folder(lab) / "outputs"));
        const AssignmentId next = lab.add_product(numbers({300, 2}, 1), numbers({2, 300}, 2), true);
        EVENTUALLY(bench, lab.assignment(next).state == State::agreed);
    }

    void a_full_disk_keeps_the_results_that_are_there() {
        FakeLab lab;
        lab.asks_for_outputs = false;
        lab.decides = false;
        WorkerBench bench;
        bench.settings.disk_rest_ms = 500;
        const InvitationLink link = lab.link();
        const AssignmentId kept = lab.add_product(numbers({300, 2}, 1), numbers({2, 300}, 2), true);
        bench.start({link});
        EVENTUALLY(bench, lab.assignment(kept).state == State::committed);
        {
            const TightDisk disk(1'000);
            const AssignmentId refused = lab.add_product(numbers({300, 2}, 1), numbers({2, 300}, 2), true);
            EVENTUALLY(bench, lab.assignment(refused).state == State::ended);
        }
        bench.die();
        lab.asks_for_outputs = true;
        lab.decides = true;
        bench.start({link});
        EVENTUALLY(bench, lab.assignment(kept).state == State::agreed);
    }
};

QTEST_GUILESS_MAIN(TestWorkerDisk)
#include "test_worker_disk.moc"
