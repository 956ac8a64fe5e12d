// A product computed by real contributors, end to end: goblin-lab and goblin-worker as a person would start
// them.
#include <QTest>

#include <nlohmann/json.hpp>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

struct Case {
    const char* policy;
    DType dtype;
};

constexpr Case cases[] = {
    {"redundant", DType::f32}, {"recompute", DType::f64}, {"product", DType::i32},
    {"product", DType::i8},    {"auto", DType::f32},
};

}  // namespace

class TestProduct : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        lab_ = std::make_unique<LabProcess>();
        for (const char* name : {"one", "two"})
            workers_.push_back(std::make_unique<WorkerProcess>(
                WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options(name), {}, {}}));
        QVERIFY(wait_until([&] { return connected() == workers_.size(); }));
    }

    void two_workers_compute_the_contracts_bits_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(cases); ++i)
            QTest::addRow("%s %s", cases[i].policy, std::string(name_of(cases[i].dtype)).c_str())
                << static_cast<int>(i);
    }
    void two_workers_compute_the_contracts_bits() {
        QFETCH(int, row);
        const Case& chosen = cases[row];
        const ProductFiles product(lab_->files(), QTest::currentDataTag(),
                                   random_matrix(chosen.dtype, 150, 90, 1),
                                   random_matrix(chosen.dtype, 90, 130, 2));
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", chosen.policy}}, "50x50");
        const Json status = lab_->wait_for_job(id);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        QVERIFY(!product.partial());
    }

    void nobody_was_found_wrong() {
        for (const Json& node : lab_->ask("node.list"))
            QCOMPARE(node["disagreed"].get<int>() + node["failed"].get<int>(), 0);
    }

    void both_stop_when_asked_to() {
        for (const auto& worker : workers_) QCOMPARE(worker->stop(), 0);
        QCOMPARE(lab_->stop(), 0);
    }

  private:
    size_t connected() {
        size_t count = 0;
        for (const Json& node : lab_->ask("node.list")) count += node["seen_s"].is_number();
        return count;
    }

    std::unique_ptr<LabProcess> lab_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestProduct)
#include "test_product.moc"
