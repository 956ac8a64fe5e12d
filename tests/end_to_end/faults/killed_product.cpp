// Starts, submits and looks into the books.
#include "tests/end_to_end/faults/killed_product.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

KilledProduct::KilledProduct(Sizes sizes)
    : sizes_(sizes), random_(printed_seed()), lab_(std::make_unique<LabProcess>()) {
    for (const char* name : {"one", "two", "three"})
        workers_.push_back(std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options(name), {}, {}}));
    lab_->wait_for_contributors(workers_.size());
    product_ = std::make_unique<ProductFiles>(lab_->files(), "p",
                                              random_matrix(DType::f32, sizes.size, sizes.depth, 1),
                                              random_matrix(DType::f32, sizes.depth, sizes.size, 2));
}

uint64_t KilledProduct::tasks() const {
    const auto tiles = static_cast<uint64_t>(sizes_.size / sizes_.tile);
    return tiles * tiles;
}

void KilledProduct::add_policies() {
    QTest::addColumn<QString>("policy");
    QTest::addColumn<int>("replicas");
    QTest::addRow("redundant") << "redundant" << 2;
    QTest::addRow("recompute") << "recompute" << 1;
    QTest::addRow("product") << "product" << 1;
}

uint64_t KilledProduct::submit(const std::string& policy) {
    std::filesystem::remove(product_->output());
    return lab_->submit_product(product_->a(), product_->b(), product_->output(), {{"verify", policy}},
                                fmt::format("{}x{}", sizes_.tile, sizes_.tile));
}

bool KilledProduct::running(uint64_t id) const {
    return !lab_->is_over(id);
}

uint64_t KilledProduct::accepted(uint64_t id) const {
    return lab_->job(id)["accepted"].get<uint64_t>();
}

void KilledProduct::sleep_up_to(int us) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, us)(random_)));
}

void KilledProduct::expect_right(uint64_t id, int replicas) {
    const lab::Json status = lab_->wait_for_job(id, 240'000);
    QVERIFY2(status["state"] == "done", status.dump().c_str());
    QCOMPARE(product_->wrong_output(), std::string());
    QVERIFY(!product_->partial());
    const LabLedger ledger(lab_->directory());
    QCOMPARE(ledger.imbalance_of(id, tasks(), static_cast<uint64_t>(replicas)), std::string());
    // The report tells of all that was computed, not only of what came after a restart.
    uint64_t results = 0;
    for (const lab::Json& volunteer : status["computed_by"]) results += volunteer["results"].get<uint64_t>();
    QCOMPARE(results, tasks() * static_cast<uint64_t>(replicas));
}

void KilledProduct::expect_credited_once_and_nobody_blamed() const {
    const LabLedger ledger(lab_->directory());
    const auto flops_per_task = static_cast<uint64_t>(2 * sizes_.tile * sizes_.tile * sizes_.depth);
    QCOMPARE(ledger.credited_results(), ledger.agreed_altogether());
    QCOMPARE(ledger.credited_flops(), ledger.agreed_altogether() * flops_per_task);
    QCOMPARE(ledger.disagreements(), uint64_t{0});
}

}  // namespace goblin::test
