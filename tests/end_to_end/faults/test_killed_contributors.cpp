// `kill -9` of contributors at random moments of a job: started again they go on, the job ends with the
// contract's bits, nothing is lost or counted twice, and nobody is blamed.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

// Panels of 72 KiB travel as blobs, tiles of 81 KiB as uploads: all kinds of transfers are cut off.
constexpr int64_t size = 144 * 6;
constexpr int64_t depth = 128;
constexpr int64_t tile = 144;
constexpr uint64_t tasks = (size / tile) * (size / tile);
constexpr uint64_t flops_per_task = 2 * tile * tile * depth;
constexpr int longest_life_us = 700'000;
constexpr int longest_death_us = 300'000;

}  // namespace

class TestKilledContributors : public QObject {
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

    void jobs_end_with_the_right_bits_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<int>("replicas");
        QTest::addRow("redundant") << "redundant" << 2;
        QTest::addRow("recompute") << "recompute" << 1;
        QTest::addRow("product") << "product" << 1;
    }
    void jobs_end_with_the_right_bits() {
        QFETCH(QString, policy);
        QFETCH(int, replicas);
        const int kills_wanted = in_form(2, 17);
        for (int kills = 0; kills < kills_wanted;) {
            std::filesystem::remove(product_->output());
            const uint64_t id =
                lab_->submit_product(product_->a(), product_->b(), product_->output(),
                                     {{"verify", policy.toStdString()}}, fmt::format("{}x{}", tile, tile));
            while (kills < kills_wanted && lab_->job(id)["state"] == "running") {
                sleep_up_to(longest_life_us);
                WorkerProcess& victim = *workers_[random_() % workers_.size()];
                victim.kill();
                ++kills;
                sleep_up_to(longest_death_us);
                victim.start();
            }
            const Json status = lab_->wait_for_job(id, 240'000);
            QVERIFY2(status["state"] == "done", status.dump().c_str());
            QCOMPARE(product_->wrong_output(), std::string());
            const LabLedger ledger(lab_->directory());
            QCOMPARE(ledger.imbalance_of(id, tasks, static_cast<uint64_t>(replicas)), std::string());
        }
    }

    void every_agreed_result_is_credited_once_and_nobody_is_blamed() {
        const LabLedger ledger(lab_->directory());
        QCOMPARE(ledger.credited_results(), ledger.agreed_altogether());
        QCOMPARE(ledger.credited_flops(), ledger.agreed_altogether() * flops_per_task);
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }

    void killed_contributors_were_no_new_ones() { QCOMPARE(lab_->ask("node.list").size(), workers_.size()); }

  private:
    void sleep_up_to(int us) {
        std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, us)(random_)));
    }

    std::mt19937_64 random_;
    std::unique_ptr<LabProcess> lab_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
    std::unique_ptr<ProductFiles> product_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestKilledContributors)
#include "test_killed_contributors.moc"
