// A contributor that is killed again and again with 200 tasks in hand: of each death only the task that was
// being computed bears the mark, so that none of the others is ever reported as failing.
#include <signal.h>
#include <sys/wait.h>

#include <QTest>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/worker/journal.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t in_hand_wanted = 200;
constexpr int kills = 6;
constexpr int64_t tile = 128;  // outputs of 64 KiB, which ride inside exchanges
constexpr int64_t tiles_a_side = 40;
constexpr auto step = std::chrono::milliseconds(3);
constexpr auto patience = std::chrono::seconds(120);

// What the worker's journal says.
struct InHand {
    size_t uncomputed = 0;
    size_t tried = 0;  // of those: computing began, and never ended
    uint64_t deaths = 0;
};

}  // namespace

class TestDeathsInPlenty : public QObject {
    Q_OBJECT

  private slots:
    void only_the_task_that_was_being_computed_counts_as_tried() {
        LabProcess lab;
        const std::vector<std::string> options = WorkerProcess::modest_options("mortal");
        WorkerProcess worker({lab.invite(), options, {}, {}});
        lab.wait_for_contributors(1);
        const ProductFiles files(lab.files(), "many", random_matrix(DType::i32, tiles_a_side * tile, 128, 1),
                                 random_matrix(DType::i32, 128, tiles_a_side * tile, 2));
        const uint64_t job = lab.submit_product(files.a(), files.b(), files.output(), {{"verify", "product"}},
                                                fmt::format("{0}x{0}", tile));
        journal_ = worker.directory() / "labs" / lab.key().hex() / "journal";
        for (int kill = 1; kill <= kills; ++kill) {
            const uint64_t deaths_before = kill == 1 ? 0 : in_hand().deaths;
            const auto give_up = Clock::now() + patience;
            while (!stopped_with_plenty_in_hand(worker))
                QVERIFY2(Clock::now() < give_up && !lab.is_over(job),
                         (lab.job(job).dump() + worker.log()).c_str());
            worker.kill();
            const InHand left = in_hand();
            QVERIFY(left.uncomputed >= in_hand_wanted);
            QVERIFY2(left.tried >= 1 && left.tried <= static_cast<size_t>(kill),
                     qPrintable(QString::number(left.tried)));
            QVERIFY(left.deaths <= deaths_before + 1);
            worker.start();
        }
        const lab::Json status = lab.wait_for_job(job, 300'000);
        QVERIFY2(status["state"] == "done", (status.dump() + "\n" + lab.history(job)).c_str());
        QCOMPARE(files.wrong_output(), std::string());
        const LabLedger ledger(lab.directory());
        QCOMPARE(ledger.imbalance_of(job, tiles_a_side * tiles_a_side, 1), std::string());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
        // Two deaths each make a task a failing one, and it is the only one.
        const uint64_t failed = ledger.assignments(job, "failed");
        QVERIFY2(failed <= kills / 2, (lab.history(job) + worker.log()).c_str());
    }

  private:
    // Lets the worker live for a moment. True when it is stopped while it computes and has plenty in hand.
    bool stopped_with_plenty_in_hand(WorkerProcess& worker) const {
        worker.signal(SIGCONT);
        std::this_thread::sleep_for(step);
        worker.signal(SIGSTOP);
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(worker.pid()), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 ||
            info.si_code != CLD_STOPPED)
            return false;
        const InHand now = in_hand();
        return now.uncomputed >= in_hand_wanted && now.tried >= 1;
    }

    // Of a copy, as the worker would take it up.
    InHand in_hand() const {
        InHand counts;
        if (!std::filesystem::exists(journal_)) return counts;
        const TemporaryFolder folder;
        const std::filesystem::path copy = folder / "journal";
        std::filesystem::copy_file(journal_, copy);
        std::vector<worker::JournalEntry> open;
        const worker::Journal journal(copy, open);
        for (const worker::JournalEntry& entry : open) {
            if (entry.computed || entry.ended) continue;
            ++counts.uncomputed;
            counts.tried += entry.deaths > 0 ? 1 : 0;
            counts.deaths += entry.deaths;
        }
        return counts;
    }

    std::filesystem::path journal_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestDeathsInPlenty)
#include "test_deaths_in_plenty.moc"
