// A lab that grants more than the owner lends: what doesn't fit memory or disk is handed back before it is
// kept. And one that grants an id again while that computes.
#include <QtTest>

#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t mib = uint64_t{1} << 20;

// Two inputs of 64 KiB that ride inside the exchange, an output of one number.
AssignmentId add_inline_task(FakeLab& lab, int seed) {
    return lab.add_product(numbers({1, 16'384}, seed), numbers({16'384, 1}, seed + 1), true);
}

// Inputs of a few bytes, an output of 360,000 bytes.
AssignmentId add_task_with_large_output(FakeLab& lab, int seed) {
    return lab.add_product(numbers({300, 1}, seed), numbers({1, 300}, seed + 1), true);
}

uint64_t bytes_below(const fs::path& folder) {
    uint64_t bytes = 0;
    for (const auto& file : fs::recursive_directory_iterator(folder))
        if (file.is_regular_file()) bytes += file.file_size();
    return bytes;
}

}  // namespace

class TestHostileLab : public QObject {
    Q_OBJECT

  private slots:
    void grants_beyond_the_memory_for_tasks_in_hand_are_handed_back_and_never_kept() {
        FakeLab lab;
        lab.grants_more_than_wanted = true;
        WorkerBench bench;
        bench.settings.in_hand_bytes = mib;
        bench.mood->takes_ms = 60'000;
        std::vector<AssignmentId> ids;
        for (int i = 0; i < 80; ++i) ids.push_back(add_inline_task(lab, i));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::ended) >= 73);
        QVERIFY2(bench.session().work().bytes_in_memory() <= mib,
                 qPrintable(QString::number(bench.session().work().bytes_in_memory())));
        QVERIFY(lab.count(State::issued) >= 5);
        for (const AssignmentId& id : ids) {
            if (lab.assignment(id).state != State::ended) continue;
            QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
            QVERIFY2(lab.assignment(id).reason.find("--memory") != std::string::npos,
                     lab.assignment(id).reason.c_str());
        }
        QVERIFY(fs::file_size(bench.lab_folder(lab) / "journal") <= mib + mib / 4);
    }

    void no_more_is_wanted_than_fits_that_memory() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.in_hand_bytes = mib;
        bench.mood->takes_ms = 60'000;
        for (int i = 0; i < 20; ++i) add_inline_task(lab, i);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        EVENTUALLY(bench, lab.last_exchange().want.tasks == 0);
        QCOMPARE(lab.count(State::ended), size_t{0});
        for (const ExchangeRequest& exchange : lab.exchanges) QVERIFY(exchange.want.tasks <= 4);
    }

    void the_journal_counts_against_the_disk_limit() {
        FakeLab lab;
        lab.grants_more_than_wanted = true;
        WorkerBench bench;
        bench.settings.disk_bytes = 3 * mib;
        bench.mood->takes_ms = 60'000;
        for (int i = 0; i < 80; ++i) add_inline_task(lab, i);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::ended) >= 60);
        const fs::path folder = bench.lab_folder(lab);
        QVERIFY2(bytes_below(folder) <= 3 * mib, qPrintable(QString::number(bytes_below(folder))));
        QVERIFY(lab.count(State::issued) >= 5);
        QVERIFY(bench.logged("expected room on the disk for a task's record"));
        bench.mood->takes_ms = 0;
        EVENTUALLY(bench, bench.session().work().book().size() <= 2);  // those whose computing began before
        QVERIFY(lab.count(State::agreed) >= 5);
    }

    void outputs_that_the_lab_never_decides_on_stay_within_the_disk_limit() {
        FakeLab lab;
        lab.grants_more_than_wanted = true;
        lab.asks_for_outputs = false;
        lab.decides = false;
        WorkerBench bench;
        bench.settings.disk_bytes = 2 * mib;
        for (int i = 0; i < 8; ++i) add_task_with_large_output(lab, i);
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::committed) == 2);
        QCOMPARE(bench.session().work().book().count(worker::Stage::waiting), size_t{6});
        QVERIFY(bytes_below(bench.lab_folder(lab)) <= 2 * mib);
        lab.asks_for_outputs = true;
        lab.decides = true;
        lab.look();
        EVENTUALLY(bench, lab.count(State::agreed) == 8);
    }

    void a_digest_of_two_sizes_is_handed_back_unfetched() {
        FakeLab lab;
        WorkerBench bench;
        lab.add_product(wide(1), tall(2));
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.count(State::agreed) == 1);
        const Digest shared = tensor_digest({}, wide(1));
        Task lie;
        lie.contract = contract_version;
        lie.graph = product_graph({DType::f32, Shape{8, 262'144}}, tall(2).spec());
        lie.inputs = {{shared, std::nullopt}, {tensor_digest({}, tall(2)), std::nullopt}};
        const AssignmentId id = lab.add_task(message_of(lie));
        EVENTUALLY(bench, lab.assignment(id).state == State::ended);
        QCOMPARE(lab.assignment(id).end_kind, ResultKind::handed_back);
        QVERIFY2(lab.assignment(id).reason.find("expected one size for each input's digest, found two") !=
                     std::string::npos,
                 lab.assignment(id).reason.c_str());
        QCOMPARE(lab.downloads_of(shared), uint64_t{1});
        const AssignmentId honest = lab.add_product(wide(1), tall(3));
        EVENTUALLY(bench, lab.assignment(honest).state == State::agreed);
    }

    void an_id_cancelled_and_granted_anew_while_it_computes_is_computed_once_at_a_time() {
        FakeLab lab;
        WorkerBench bench;
        bench.mood->takes_ms = 60'000;
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.mood->running == 1);
        lab.cancel_and_grant_anew(id);
        EVENTUALLY(bench, bench.logged("granted anew"));
        EVENTUALLY(bench, bench.mood->runs == 2);
        QCOMPARE(bench.session().work().tally().handed_back, uint64_t{0});
        QCOMPARE(bench.session().work().book().count(worker::Stage::computing), size_t{1});
        lab.cancel(id, "not needed");
        EVENTUALLY(bench, bench.mood->running == 0);
        bench.running().stop("the test is over");
        EVENTUALLY(bench, bench.exit_code == 0);
    }
};

QTEST_GUILESS_MAIN(TestHostileLab)
#include "test_hostile_lab.moc"
