// A contributor that is paused or told to stop hands its tasks back at once: others get them before any
// deadline, nobody is blamed, and after a pause it takes tasks again.
#include <signal.h>

#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
using Clock = std::chrono::steady_clock;

constexpr uint64_t tasks_in_hand = 8;
constexpr auto at_once = std::chrono::seconds(10);  // an assignment lasts 30 s at least

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

class TestHandingBack : public QObject {
    Q_OBJECT

  private slots:
    // A contributor that is no newcomer any more, and has many tasks in hand: their inputs come slowly.
    void init() {
        lab_ = std::make_unique<LabProcess>();
        proxy_ = std::make_unique<TcpProxy>(lab_->port());
        worker_ = std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_->invite_through({"127.0.0.1", proxy_->port()}),
                                    WorkerProcess::modest_options("one"),
                                    {},
                                    {}});
        lab_->wait_for_contributors(1);
        first_ = std::make_unique<ProductFiles>(lab_->files(), "first", random_matrix(DType::i32, 256, 32, 1),
                                                random_matrix(DType::i32, 32, 256, 2));
        product_ = std::make_unique<ProductFiles>(lab_->files(), "p", random_matrix(DType::i32, 512, 1024, 1),
                                                  random_matrix(DType::i32, 1024, 128, 2));
        expect_done(submit(*first_, "32x32"), *first_);
        proxy_->limit_rate(64 << 10);
        job_ = submit(*product_, "32x32");  // panels of 128 KiB
        QVERIFY2(wait_until([&] { return shown()["open_assignments"].get<uint64_t>() >= tasks_in_hand; }),
                 worker_->log().c_str());
    }
    void cleanup() {
        worker_.reset();
        proxy_.reset();
        lab_.reset();
    }

    void a_paused_contributor_hands_its_tasks_back_at_once_and_takes_new_ones_when_it_goes_on() {
        worker_->signal(SIGUSR1);
        expect_all_handed_back_at_once();
        QVERIFY(wait_until([&] { return shown()["state"] == "paused"; }));
        QVERIFY2(has(worker_->log(), "pauses, and hands back what is in hand"), worker_->log().c_str());
        expect_another_ends_the_job();

        // A paused one takes nothing.
        proxy_->limit_rate(0);
        std::filesystem::remove(first_->output());
        const uint64_t waiting = submit(*first_, "32x32");
        std::this_thread::sleep_for(std::chrono::seconds(1));
        QCOMPARE(lab_->job(waiting)["accepted"].get<int>(), 0);
        QVERIFY(worker_->running());
        worker_->signal(SIGUSR2);
        expect_done(waiting, *first_);
        QVERIFY2(has(worker_->log(), "takes tasks again"), worker_->log().c_str());
        QCOMPARE(worker_->stop(), 0);
    }

    void a_contributor_that_is_told_to_stop_hands_its_tasks_back_at_once() {
        const auto start = Clock::now();
        QCOMPARE(worker_->stop(), 0);
        QVERIFY2(Clock::now() - start < at_once, worker_->log().c_str());
        expect_all_handed_back_at_once();
        expect_another_ends_the_job();
    }

  private:
    uint64_t submit(const ProductFiles& product, const std::string& tile) const {
        return lab_->submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}},
                                    tile);
    }
    Json shown() const { return lab_->ask("node.show", {{"id", 1}}); }

    void expect_all_handed_back_at_once() const {
        const auto start = Clock::now();
        QVERIFY2(wait_until([&] { return shown()["open_assignments"] == 0; }), worker_->log().c_str());
        QVERIFY2(Clock::now() - start < at_once, worker_->log().c_str());
        const LabLedger ledger(lab_->directory());
        QVERIFY(ledger.assignments(job_, "refused") >= tasks_in_hand / 2);
        QCOMPARE(ledger.assignments(job_, "failed"), uint64_t{0});
        QCOMPARE(ledger.assignments(job_, "expired"), uint64_t{0});
        QCOMPARE(shown()["failed"].get<int>(), 0);
    }

    void expect_another_ends_the_job() const {
        WorkerProcess other({lab_->invite(), WorkerProcess::modest_options("other"), {}, {}});
        expect_done(job_, *product_);
        QVERIFY2(!has(lab_->history(job_), "is late"), lab_->history(job_).c_str());
        QCOMPARE(other.stop(), 0);
    }

    void expect_done(uint64_t id, const ProductFiles& product) const {
        const Json status = lab_->wait_for_job(id);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        const LabLedger ledger(lab_->directory());
        QCOMPARE(ledger.imbalance_of(id, status["tasks"].get<uint64_t>(), 1), std::string());
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<TcpProxy> proxy_;
    std::unique_ptr<WorkerProcess> worker_;
    std::unique_ptr<ProductFiles> first_, product_;
    uint64_t job_ = 0;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestHandingBack)
#include "test_handing_back.moc"
