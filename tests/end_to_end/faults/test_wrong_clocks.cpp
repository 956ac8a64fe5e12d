// Clocks that are a day off, at the lab or at a contributor: joining, computing and verifying go on as ever,
// and nothing is late.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

constexpr int64_t day_s = 86'400;

std::vector<std::string> clock_off_by(int64_t seconds) {
    if (seconds == 0) return {};
    return {"LD_PRELOAD=" GOBLIN_PRELOAD_WALL_CLOCK, "GOBLIN_TEST_CLOCK_OFF_S=" + std::to_string(seconds)};
}

// The day of a log's first line, in days since 1970.
int64_t first_day(const std::string& log) {
    std::tm date{};
    date.tm_year = std::stoi(log.substr(0, 4)) - 1900;
    date.tm_mon = std::stoi(log.substr(5, 2)) - 1;
    date.tm_mday = std::stoi(log.substr(8, 2));
    return timegm(&date) / day_s;
}

}  // namespace

class TestWrongClocks : public QObject {
    Q_OBJECT

  private slots:
    void a_clock_that_is_a_day_off_does_no_harm_data() {
        QTest::addColumn<qint64>("lab_off_s");
        QTest::addColumn<qint64>("worker_off_s");
        QTest::addRow("the lab is a day ahead") << qint64{day_s} << qint64{0};
        QTest::addRow("the lab is a day behind") << qint64{-day_s} << qint64{0};
        QTest::addRow("the contributor is a day ahead") << qint64{0} << qint64{day_s};
        QTest::addRow("the contributor is a day behind") << qint64{0} << qint64{-day_s};
    }
    void a_clock_that_is_a_day_off_does_no_harm() {
        QFETCH(qint64, lab_off_s);
        QFETCH(qint64, worker_off_s);
        LabProcess::Settings settings;
        settings.environment = clock_off_by(lab_off_s);
        LabProcess lab(settings);
        WorkerProcess worker(
            {lab.invite(), WorkerProcess::modest_options("one"), clock_off_by(worker_off_s), {}});
        // Blobs, uploads and small results.
        const ProductFiles product(lab.files(), "p", random_matrix(DType::i32, 512, 256, 1),
                                   random_matrix(DType::i32, 256, 512, 2));
        for (const char* tile : {"160x160", "32x32"}) {
            std::filesystem::remove(product.output());
            const uint64_t id =
                lab.submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}}, tile);
            const Json status = lab.wait_for_job(id);
            QVERIFY2(status["state"] == "done", (worker.log() + lab.history(id)).c_str());
            QCOMPARE(product.wrong_output(), std::string());
            const LabLedger ledger(lab.directory());
            QCOMPARE(ledger.imbalance_of(id, status["tasks"].get<uint64_t>(), 1), std::string());
            QVERIFY(lab.history(id).find("is late") == std::string::npos);
        }
        // The clocks were off indeed (midnight may pass between the two).
        const int64_t apart = first_day(lab.log()) - first_day(worker.log());
        const int64_t wanted = (lab_off_s - worker_off_s) / day_s;
        QVERIFY2(apart == wanted || apart == wanted - 1, (lab.log() + worker.log()).c_str());

        // And after a restart of both.
        QCOMPARE(worker.stop(), 0);
        QCOMPARE(lab.stop(), 0);
        lab.start();
        worker.start();
        std::filesystem::remove(product.output());
        const uint64_t id = lab.submit_product(product.a(), product.b(), product.output(),
                                               {{"verify", "product"}}, "160x160");
        QVERIFY(lab.wait_for_job(id)["state"] == "done");
        QCOMPARE(product.wrong_output(), std::string());
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestWrongClocks)
#include "test_wrong_clocks.moc"
