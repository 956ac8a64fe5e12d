// A lab that has IPv6 only, on a network of the test's own whose cable is pulled: work goes on when it is
// plugged in again, and a link that is gone is noticed within a minute.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
using Clock = std::chrono::steady_clock;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

LabProcess::Settings on_ipv6() {
    LabProcess::Settings settings;
    settings.address = "::1";
    return settings;
}

// Between a lab and its contributors. Where the system gives a test no network of its own, a proxy stands in
// that lets everything sent disappear.
class Cable {
  public:
    explicit Cable(uint16_t port)
        : port_(port),
          proxy_(OwnNetwork::prepared()
                     ? nullptr
                     : std::make_unique<TcpProxy>(TcpProxy::Place{"::1", port}, TcpProxy::Place{"::1", 0})) {}
    ~Cable() { plug_in(); }

    HostPort end() const { return {"::1", proxy_ ? proxy_->port() : port_}; }
    void pull() {
        if (proxy_)
            proxy_->go_silent();
        else
            OwnNetwork::pull_cable();
    }
    void plug_in() {
        if (proxy_)
            proxy_->speak_again();
        else
            OwnNetwork::plug_in();
    }

  private:
    uint16_t port_;
    std::unique_ptr<TcpProxy> proxy_;
};

}  // namespace

class TestPulledCable : public QObject {
    Q_OBJECT

  private slots:
    void init() {
        lab_ = std::make_unique<LabProcess>(on_ipv6());
        cable_ = std::make_unique<Cable>(lab_->port());
        WorkerProcess::Settings settings{
            lab_->invite_through(cable_->end()), WorkerProcess::modest_options("one"), {}, {}};
        worker_ = std::make_unique<WorkerProcess>(settings);
        lab_->wait_for_contributors(1);
        // Panels of 128 KiB travel as blobs, tiles of 64 KiB and more as uploads.
        product_ = std::make_unique<ProductFiles>(lab_->files(), "p", random_matrix(DType::i32, 2048, 256, 1),
                                                  random_matrix(DType::i32, 256, 1024, 2));
    }
    void cleanup() {
        worker_.reset();
        cable_.reset();
        lab_.reset();
    }

    void a_lab_with_ipv6_alone_works() {
        QVERIFY(lab_->invite().starts_with("goblin://[::1]:"));
        expect_done(submit());
        const Json nodes = lab_->ask("node.list");
        QCOMPARE(lab_->ask("node.show", {{"id", nodes[0]["id"]}})["address"].get<std::string>(),
                 std::string("::1"));
        const Finished listed = lab_->command({"node", "list"});
        QVERIFY2(listed.exit_code == 0, listed.errors.c_str());
        QCOMPARE(worker_->stop(), 0);
    }

    void a_cable_that_is_pulled_for_a_while_loses_nothing() {
        const uint64_t id = submit();
        QVERIFY(wait_until([&] { return accepted(id) > 0; }, 60'000, 1));
        cable_->pull();
        std::this_thread::sleep_for(std::chrono::seconds(2));  // for what had arrived before
        const uint64_t kept = accepted(id);
        QVERIFY2(kept < tasks, "the job was over before the cable was pulled");
        std::this_thread::sleep_for(std::chrono::seconds(2));
        QCOMPARE(accepted(id), kept);
        QVERIFY(lab_->running());
        QVERIFY(worker_->running());
        cable_->plug_in();
        expect_done(id);
    }

    void a_pulled_cable_is_noticed_within_a_minute() {
        if (!long_form()) QSKIP("takes a minute; ./goblin test --all runs it");
        expect_done(submit());
        const size_t known = worker_->log().size();
        cable_->pull();
        const auto start = Clock::now();
        QVERIFY2(wait_until([&] { return has(worker_->log().substr(known), "tries again"); }, 90'000),
                 worker_->log().c_str());
        const auto took = Clock::now() - start;
        QVERIFY2(took < std::chrono::seconds(61), worker_->log().c_str());
        cable_->plug_in();
        std::filesystem::remove(product_->output());
        expect_done(submit());
    }

  private:
    static constexpr uint64_t tasks = 16 * 8;

    uint64_t submit() const {
        return lab_->submit_product(product_->a(), product_->b(), product_->output(), {{"verify", "product"}},
                                    "128x128");
    }
    uint64_t accepted(uint64_t id) const { return lab_->job(id)["accepted"].get<uint64_t>(); }

    void expect_done(uint64_t id) const {
        const Json status = lab_->wait_for_job(id, 240'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product_->wrong_output(), std::string());
        const LabLedger ledger(lab_->directory());
        QCOMPARE(ledger.imbalance_of(id, status["tasks"].get<uint64_t>(), 1), std::string());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<Cable> cable_;
    std::unique_ptr<WorkerProcess> worker_;
    std::unique_ptr<ProductFiles> product_;
};

}  // namespace goblin::test

int main(int count, char** arguments) {
    using goblin::test::OwnNetwork;
    if (OwnNetwork::prepare()) OwnNetwork::remove_ipv4();
    goblin::test::TestPulledCable test;
    return QTest::qExec(&test, count, arguments);
}
#include "test_pulled_cable.moc"
