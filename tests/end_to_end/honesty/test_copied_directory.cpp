// A worker's directory copied to a second computer, both running: the lab notices, the one that was started
// earlier is told what to do and ends, nothing counts twice, and nobody is convicted.
#include <QTest>

#include <filesystem>

#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

constexpr int64_t tiles_a_side = 24;
constexpr int64_t tile = 16;

WorkerProcess::Settings modest(const LabProcess& lab, const std::string& name) {
    return {lab.invite(), WorkerProcess::modest_options(name), {}, {}};
}

int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

// How often its starts led to the lab.
int connections(const WorkerProcess& worker) {
    return times(worker.log(), ": connected");
}

}  // namespace

class TestCopiedDirectory : public QObject {
    Q_OBJECT

  private slots:
    void of_two_copies_the_one_started_later_works_and_the_other_is_told_what_to_do() {
        LabProcess lab;
        WorkerProcess other(modest(lab, "other"));
        WorkerProcess original(modest(lab, "original"));
        lab.wait_for_contributors(2);
        const ProductFiles files(lab.files(), "tiled", random_matrix(DType::f32, tiles_a_side * tile, 64, 1),
                                 random_matrix(DType::f32, 64, tiles_a_side * tile, 2));
        const uint64_t job = lab.submit_product(files.a(), files.b(), files.output(),
                                                {{"verify", "redundant"}}, fmt::format("{0}x{0}", tile));
        QVERIFY(wait_until([&] { return lab.job(job)["accepted"].get<int>() > 20; }, 60'000, 1));
        original.kill();  // with tasks in hand, which both copies know of
        const TemporaryFolder folder;
        const std::filesystem::path copied = folder / "copied";
        std::filesystem::copy(original.directory(), copied, std::filesystem::copy_options::recursive);
        original.start();
        QVERIFY2(wait_until([&] { return connections(original) == 2; }), original.log().c_str());

        WorkerProcess copy({"", WorkerProcess::modest_options("original"), {}, copied});
        expect_refused(original, copy);
        QVERIFY2(
            copy.log().find("was last used on another computer or at another place") != std::string::npos,
            copy.log().c_str());

        // Who goes on with the refused one as it is only ends the other.
        original.start();
        expect_refused(copy, original);

        const lab::Json status = lab.wait_for_job(job, 120'000);
        QVERIFY2(status["state"] == "done", (status.dump() + "\n" + lab.history(job)).c_str());
        VERIFY_EMPTY(files.wrong_output());
        const LabLedger ledger(lab.directory());
        VERIFY_EMPTY(ledger.imbalance_of(job, tiles_a_side * tiles_a_side, 2));
        QCOMPARE(ledger.disagreements(), uint64_t{0});
        QCOMPARE(ledger.credited_results(), ledger.agreed_altogether());
        QCOMPARE(lab.ask("node.list").size(), size_t{2});
    }

  private:
    static void expect_refused(WorkerProcess& older, WorkerProcess& newer) {
        const std::optional<int> code = older.process().wait(60'000);
        const std::string logs = older.log() + "\nthe newer one:\n" + newer.log();
        QVERIFY2(code == 1, logs.c_str());
        for (const char* text : {"the copy that was started later works on. Stop one of them",
                                 "a fresh directory (--dir) and a new invitation link (--join)"})
            QVERIFY2(older.log().find(text) != std::string::npos, logs.c_str());
        QVERIFY2(newer.running(), logs.c_str());
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestCopiedDirectory)
#include "test_copied_directory.moc"
