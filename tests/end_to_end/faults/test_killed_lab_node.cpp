// `kill -9` of the lab node at random moments of a job: after each restart the job goes on by itself, and
// ends with the contract's bits; nothing accepted is lost or counted twice.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

constexpr int64_t size = 384;
constexpr int64_t depth = 96;
constexpr int64_t tile = 16;
constexpr uint64_t tasks = (size / tile) * (size / tile);
constexpr uint64_t flops_per_task = 2 * tile * tile * depth;
constexpr int longest_life_us = 1'200'000;  // between two kills
constexpr int longest_birth_us = 60'000;    // of a lab node that is killed while it starts

}  // namespace

class TestKilledLabNode : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        random_.seed(printed_seed());
        lab_ = std::make_unique<LabProcess>();
        for (const char* name : {"one", "two", "three"})
            workers_.push_back(std::make_unique<WorkerProcess>(
                WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options(name), {}, {}}));
        lab_->wait_for_contributors(workers_.size());
        product_ =
            std::make_unique<ProductFiles>(lab_->files(), "p", random_matrix(DType::f32, size, depth, 1),
                                           random_matrix(DType::f32, depth, size, 2));
    }

    void jobs_end_by_themselves_with_the_right_bits_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<int>("replicas");
        QTest::addRow("redundant") << "redundant" << 2;
        QTest::addRow("recompute") << "recompute" << 1;
        QTest::addRow("product") << "product" << 1;
    }
    void jobs_end_by_themselves_with_the_right_bits() {
        QFETCH(QString, policy);
        QFETCH(int, replicas);
        const int kills_wanted = in_form(2, 17);
        for (int kills = 0; kills < kills_wanted;) {
            const uint64_t id = submit(policy.toStdString());
            uint64_t accepted = 0;
            while (kills < kills_wanted && !over(id)) {
                live_for_a_while();
                accepted = std::max(accepted, accepted_of(id));
                lab_->kill();
                ++kills;
                die_again_while_starting();
                lab_->start();
                const uint64_t kept = accepted_of(id);
                QVERIFY2(
                    kept >= accepted,
                    qPrintable(
                        QString("%1 tasks were accepted, after the restart %2").arg(accepted).arg(kept)));
            }
            const Json status = lab_->wait_for_job(id, 240'000);
            QVERIFY2(status["state"] == "done", status.dump().c_str());
            QCOMPARE(product_->wrong_output(), std::string());
            QVERIFY(!product_->partial());
            const LabLedger ledger(lab_->directory());
            QCOMPARE(ledger.imbalance_of(id, tasks, static_cast<uint64_t>(replicas)), std::string());
            // The report tells of all that was computed, not only of what came after the last restart.
            uint64_t results = 0;
            for (const Json& volunteer : status["computed_by"])
                results += volunteer["results"].get<uint64_t>();
            QCOMPARE(results, tasks * static_cast<uint64_t>(replicas));
        }
    }

    void every_agreed_result_is_credited_once() {
        const LabLedger ledger(lab_->directory());
        QCOMPARE(ledger.credited_results(), ledger.agreed_altogether());
        QCOMPARE(ledger.credited_flops(), ledger.agreed_altogether() * flops_per_task);
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }

    void workers_and_lab_stop_cleanly_afterwards() {
        for (const auto& worker : workers_) QCOMPARE(worker->stop(), 0);
        QCOMPARE(lab_->stop(), 0);
    }

  private:
    uint64_t submit(const std::string& policy) {
        std::filesystem::remove(product_->output());
        return lab_->submit_product(product_->a(), product_->b(), product_->output(), {{"verify", policy}},
                                    fmt::format("{}x{}", tile, tile));
    }
    bool over(uint64_t id) { return lab_->job(id)["state"] != "running"; }
    uint64_t accepted_of(uint64_t id) { return lab_->job(id)["accepted"].get<uint64_t>(); }

    void sleep_up_to(int us) {
        std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, us)(random_)));
    }
    void live_for_a_while() { sleep_up_to(longest_life_us); }

    // Every other time: killed before it has taken up its jobs, too.
    void die_again_while_starting() {
        if (random_() % 2 == 0) return;
        const TemporaryFolder said;
        ChildProcess newborn({program("goblin-lab"),
                              {"--dir", lab_->directory().string(), "serve", "--listen",
                               fmt::format("127.0.0.1:{}", lab_->port())},
                              {},
                              said / "out",
                              said / "err"});
        sleep_up_to(longest_birth_us);
        newborn.kill();
    }

    std::mt19937_64 random_;
    std::unique_ptr<LabProcess> lab_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
    std::unique_ptr<ProductFiles> product_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestKilledLabNode)
#include "test_killed_lab_node.moc"
