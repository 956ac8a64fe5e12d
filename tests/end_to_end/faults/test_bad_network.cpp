// Bad networks between a lab and its contributors: links that are cut, slow or silent, replies that get lost,
// labs that answer nothing. Transfers resume, work goes on, and nothing is lost or counted twice.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
using Clock = std::chrono::steady_clock;

constexpr uint64_t mib = 1 << 20;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

// A lab that is reached through a proxy.
struct FarLab {
    LabProcess lab;
    TcpProxy proxy{lab.port()};

    std::string invite() const { return lab.invite_through({"127.0.0.1", proxy.port()}); }
    WorkerProcess::Settings worker(const std::string& name) const {
        WorkerProcess::Settings settings{invite(), WorkerProcess::modest_options(name), {}, {}};
        settings.options.insert(settings.options.end(), {"--log-level", "debug"});
        return settings;
    }
};

}  // namespace

class TestBadNetwork : public QObject {
    Q_OBJECT

  private slots:
    void init() { far_ = std::make_unique<FarLab>(); }
    void cleanup() { far_.reset(); }

    // Each connection is cut before a blob of 4 MiB has passed: only who goes on where it stopped ever ends.
    void transfers_go_on_where_they_were_cut_data() {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("depth");
        QTest::addRow("inputs of 4 MiB are fetched") << 32 << 32'768;
        QTest::addRow("an output of 4 MiB is sent") << 1024 << 16;
    }
    void transfers_go_on_where_they_were_cut() {
        QFETCH(int, rows);
        QFETCH(int, depth);
        WorkerProcess worker(far_->worker("one"));
        far_->lab.wait_for_contributors(1);
        far_->proxy.limit_rate(8 * mib);  // so that a cut finds little in the system's buffers
        far_->proxy.cut_each_after(5 * mib / 2);
        const ProductFiles product = product_of_integers(rows, depth);
        const uint64_t id = submit(product, "product", fmt::format("{}x{}", rows, rows));
        expect_done(id, product, 1);
        QVERIFY2(far_->proxy.resets() >= 1, worker.log().c_str());
        const uint64_t carried = far_->proxy.bytes_up() + far_->proxy.bytes_down();
        QVERIFY2(carried < 24 * mib, qPrintable(QString("%1 bytes passed").arg(carried)));
    }

    void a_slow_link_makes_nothing_late() {
        WorkerProcess worker(far_->worker("one"));
        far_->lab.wait_for_contributors(1);
        far_->proxy.limit_rate(512 << 10);
        const ProductFiles product = product_of_integers(256, 1024);  // 2 MiB in panels of 256 KiB
        const uint64_t id = submit(product, "product", "64x64");
        const auto start = Clock::now();
        expect_done(id, product, 1);
        QVERIFY(Clock::now() - start > std::chrono::seconds(3));
        QCOMPARE(worker.stop(), 0);
    }

    void a_contributor_computes_on_while_the_link_is_cut() {
        WorkerProcess worker(far_->worker("one"));
        const ProductFiles product(far_->lab.files(), "p", random_matrix(DType::i64, 1024, 512, 1),
                                   random_matrix(DType::i64, 512, 1024, 2));
        const auto submit_it = [&] {
            std::filesystem::remove(product.output());
            return submit(product, "product", "256x256");
        };
        expect_done(submit_it(), product, 1);  // now it has the inputs, and no newcomer's quota
        const auto in_hand = [&] { return count_of(worker.log(), ": in hand"); };
        const auto computed = [&] { return count_of(worker.log(), ": computed in"); };
        const size_t before = computed();
        const uint64_t id = submit_it();
        QVERIFY(wait_until([&] { return in_hand() >= before + 8; }, 60'000, 1));
        far_->proxy.refuse();
        const size_t at_cut = computed();
        QVERIFY2(wait_until([&] { return computed() >= std::min(at_cut + 3, in_hand()); }),
                 worker.log().c_str());
        QVERIFY2(computed() > at_cut, worker.log().c_str());
        QVERIFY2(wait_until([&] { return has(worker.log(), "tries again"); }), worker.log().c_str());
        QVERIFY(far_->lab.job(id)["state"] == "running");
        far_->proxy.accept_again();
        expect_done(id, product, 1);
        QCOMPARE(count_of(worker.log(), ": computed in"), 2 * before);  // nothing was computed again
    }

    // What the lab did is done, but the contributor doesn't know: it asks and tells again.
    void a_reply_that_got_lost_is_sent_again() {
        WorkerProcess one(far_->worker("one"));
        WorkerProcess two(far_->worker("two"));
        far_->lab.wait_for_contributors(2);
        const ProductFiles product(far_->lab.files(), "p", random_matrix(DType::f32, 864, 128, 1),
                                   random_matrix(DType::f32, 128, 864, 2));
        uint64_t lost = 0;
        for (int round = 0; round < in_form(1, 10); ++round) {
            std::filesystem::remove(product.output());
            const uint64_t id = submit(product, "redundant", "144x144");
            const uint64_t wanted = lost + 8;
            const bool over = wait_until(
                [&] {
                    if (far_->lab.is_over(id)) return true;
                    far_->proxy.lose_replies();
                    lost = far_->proxy.replies_lost();
                    return lost >= wanted;
                },
                120'000, 100);
            QVERIFY2(over, far_->lab.history(id).c_str());
            expect_done(id, product, 2);
        }
        QVERIFY2(lost >= 4, qPrintable(QString("%1 replies were lost").arg(lost)));
    }

    void a_link_that_is_cut_again_and_again_loses_nothing() {
        WorkerProcess one(far_->worker("one"));
        WorkerProcess two(far_->worker("two"));
        far_->lab.wait_for_contributors(2);
        const ProductFiles product(far_->lab.files(), "p", random_matrix(DType::f32, 864, 128, 1),
                                   random_matrix(DType::f32, 128, 864, 2));
        for (int round = 0; round < in_form(1, 10); ++round) {
            std::filesystem::remove(product.output());
            const uint64_t id = submit(product, "redundant", "144x144");
            int cuts = 0;
            wait_until(
                [&] {
                    far_->proxy.cut();
                    return ++cuts == 5 || far_->lab.is_over(id);
                },
                120'000, 200);
            expect_done(id, product, 2);
        }
        QVERIFY(far_->proxy.resets() >= 2);
    }

    void a_lab_that_answers_nothing_doesnt_keep_a_contributor_from_its_other_labs_data() {
        QTest::addColumn<bool>("from_the_start");
        QTest::addRow("silent from the start") << true;
        QTest::addRow("fallen silent with tasks in hand") << false;
    }
    void a_lab_that_answers_nothing_doesnt_keep_a_contributor_from_its_other_labs() {
        QFETCH(bool, from_the_start);
        const LabProcess other;
        WorkerProcess::Settings settings = far_->worker("one");
        settings.options.insert(settings.options.end(), {"--join", other.invite()});
        if (from_the_start) far_->proxy.go_silent();
        WorkerProcess worker(settings);
        uint64_t waiting = 0;
        const ProductFiles held = product_of_integers(256, 1024);
        if (!from_the_start) {
            far_->lab.wait_for_contributors(1);
            far_->proxy.limit_rate(64 << 10);
            waiting = submit(held, "product", "64x64");
            QVERIFY(wait_until([&] { return has(worker.log(), ": in hand"); }));
            far_->proxy.go_silent();
        }
        const ProductFiles product(other.files(), "p", random_matrix(DType::i32, 256, 64, 1),
                                   random_matrix(DType::i32, 64, 256, 2));
        const auto start = Clock::now();
        const uint64_t id = other.submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "32x32");
        QVERIFY(other.wait_for_job(id)["state"] == "done");
        QCOMPARE(product.wrong_output(), std::string());
        // Not one of the silent lab's time limits was waited for.
        QVERIFY(Clock::now() - start < std::chrono::seconds(20));
        if (from_the_start) return;
        QVERIFY(far_->lab.job(waiting)["state"] == "running");
    }

    void a_link_that_went_silent_without_a_reset_is_noticed_within_a_minute_data() {
        QTest::addColumn<QString>("moment");
        QTest::addRow("while the contributor waits for work") << "waiting";
        QTest::addRow("while it fetches an input") << "fetching";
        QTest::addRow("while it sends an output") << "sending";
    }
    void a_link_that_went_silent_without_a_reset_is_noticed_within_a_minute() {
        if (!long_form()) QSKIP("takes a minute; ./goblin test --all runs it");
        QFETCH(QString, moment);
        WorkerProcess worker(far_->worker("one"));
        far_->lab.wait_for_contributors(1);
        const ProductFiles product =
            moment == "sending" ? product_of_integers(1024, 16) : product_of_integers(32, 32'768);
        const std::string tile = moment == "sending" ? "1024x1024" : "32x32";
        std::optional<uint64_t> id;
        if (moment != "waiting") {
            far_->proxy.limit_rate(512 << 10);
            id = submit(product, "product", tile);
            const auto carried = [&] {
                return moment == "sending" ? far_->proxy.bytes_up() : far_->proxy.bytes_down();
            };
            QVERIFY(wait_until([&] { return carried() > mib; }));
        }
        far_->proxy.go_silent();
        const size_t known = worker.log().size();
        const auto start = Clock::now();
        const auto noticed = [&] {
            const std::string news = worker.log().substr(known);
            return has(news, "found silence") || has(news, "interrupted") || has(news, "tries again");
        };
        QVERIFY2(wait_until(noticed, 90'000), worker.log().c_str());
        const auto took = Clock::now() - start;
        QVERIFY2(took < std::chrono::seconds(61), worker.log().c_str());
        far_->proxy.limit_rate(0);
        far_->proxy.speak_again();
        if (!id) id = submit(product, "product", tile);
        expect_done(*id, product, 1);
    }

    // Who fell silent is waited for only until its time is over.
    void tasks_of_a_contributor_that_fell_silent_go_to_others() {
        if (!long_form()) QSKIP("takes as long as an assignment lasts; ./goblin test --all runs it");
        WorkerProcess silent(far_->worker("silent"));
        far_->lab.wait_for_contributors(1);
        far_->proxy.limit_rate(64 << 10);
        const ProductFiles product = product_of_integers(256, 1024);
        const uint64_t id = submit(product, "product", "64x64");
        QVERIFY(wait_until([&] { return has(silent.log(), ": in hand"); }));
        far_->proxy.go_silent();
        WorkerProcess other({far_->lab.invite(), WorkerProcess::modest_options("other"), {}, {}});
        const Json status = far_->lab.wait_for_job(id, 240'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        QVERIFY2(has(far_->lab.history(id), "is late"), far_->lab.history(id).c_str());
        const LabLedger ledger(far_->lab.directory());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }

  private:
    // [size, depth] times [depth, size].
    ProductFiles product_of_integers(int64_t size, int64_t depth) const {
        return ProductFiles(far_->lab.files(), "p", random_matrix(DType::i32, size, depth, 1),
                            random_matrix(DType::i32, depth, size, 2));
    }
    uint64_t submit(const ProductFiles& product, const std::string& policy, const std::string& tile) const {
        return far_->lab.submit_product(product.a(), product.b(), product.output(), {{"verify", policy}},
                                        tile);
    }

    void expect_done(uint64_t id, const ProductFiles& product, uint64_t replicas) const {
        const Json status = far_->lab.wait_for_job(id, 240'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        const LabLedger ledger(far_->lab.directory());
        QCOMPARE(ledger.imbalance_of(id, status["tasks"].get<uint64_t>(), replicas), std::string());
        QCOMPARE(ledger.credited_results(), ledger.agreed_altogether());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
        QVERIFY2(!has(far_->lab.history(id), "is late"), far_->lab.history(id).c_str());
    }

    std::unique_ptr<FarLab> far_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestBadNetwork)
#include "test_bad_network.moc"
