// The lab's memory for uploads: who dawdles takes none of it from others, and who was cut goes on where it
// was.
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"
#include "tests/support/contributor.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
constexpr uint64_t mebibyte = uint64_t{1} << 20;

// Begins its upload again and again, each time a little faster than the slowest body that is still read.
class Loris {
  public:
    Loris(const LabProcess& lab, const std::string& name, const std::string& from)
        : contributor_(settings_for(lab, name, from)) {}
    ~Loris() {
        ending_ = true;
        if (thread_.joinable()) thread_.join();
    }

    // Whether it got a task, committed to its numbers and was asked for them.
    bool takes_a_task() {
        work_ = contributor_.take_task();
        if (work_ == nullptr) return false;
        contributor_.tell(Contributor::commitment(*work_));
        return contributor_.wait_until_asked(work_->id());
    }
    void dawdle() {
        thread_ = std::thread([this] {
            while (!ending_) try {
                    dawdle_until_cut_off();
                } catch (const Error&) {
                    ++cut_off_;
                }
        });
    }
    uint64_t begun() const { return begun_; }
    uint64_t cut_off() const { return cut_off_; }
    Contributor& contributor() { return contributor_; }
    Work& work() { return *work_; }

  private:
    static Contributor::Settings settings_for(const LabProcess& lab, const std::string& name,
                                              const std::string& from) {
        Contributor::Settings settings;
        settings.lab = lab.client_settings();
        settings.lab.from = from;
        settings.link = lab.invite();
        settings.name = name;
        return settings;
    }
    void dawdle_until_cut_off() {
        HttpsClient& client = contributor_.wire().client();
        client.connect();
        client.send(
            fmt::format("PUT /v1/blobs/{}?leaf=0 HTTP/1.1\r\nHost: lab\r\n{}Content-Length: {}\r\n\r\n",
                        tensor_digest(work_->grant.key, work_->outputs[0]).hex(),
                        contributor_.wire().authorization(), work_->outputs[0].size_bytes()));
        std::vector<uint8_t> head = {0, 0, 0, 0x10, 0};  // a raw leaf of a mebibyte
        client.send(head);
        ++begun_;
        while (!ending_) {
            client.send(std::string(128, 'x'));
            if (client.closes_within(50)) throw Error(ErrorKind::network, "cut off");
        }
        client.disconnect();
    }

    Contributor contributor_;
    Work* work_ = nullptr;
    std::atomic<bool> ending_{false};
    std::atomic<uint64_t> begun_{0};
    std::atomic<uint64_t> cut_off_{0};
    std::thread thread_;
};

}  // namespace

class TestSlowUploads : public QObject {
    Q_OBJECT

  private slots:
    void slow_uploads_take_no_memory_from_honest_contributors() {
        // Three tiles of 32 MiB are all the memory that there is for uploads.
        LabProcess lab;
        const ProductFiles bait(lab.files(), "bait", random_matrix(DType::f32, 4 * 2048, 1, 1),
                                random_matrix(DType::f32, 1, 4096, 2));
        const uint64_t bait_job =
            lab.submit_product(bait.a(), bait.b(), bait.output(), {{"verify", "recompute"}}, "2048x4096");
        std::vector<std::unique_ptr<Loris>> lorises;
        for (int i = 0; i < 3; ++i) {
            lorises.push_back(
                std::make_unique<Loris>(lab, fmt::format("loris {}", i), fmt::format("127.0.2.{}", i + 1)));
            QVERIFY(lorises.back()->takes_a_task());
        }
        Loris canary(lab, "canary", "127.0.2.9");
        QVERIFY(canary.takes_a_task());
        for (const auto& loris : lorises) loris->dawdle();
        QVERIFY(wait_until([&] {
            return std::all_of(lorises.begin(), lorises.end(),
                               [](const auto& loris) { return loris->begun() > 0; });
        }));
        // The attack works, for a moment.
        const bool full = wait_until(
            [&] {
                try {
                    canary.contributor().wire().leaves_arrived(
                        tensor_digest(canary.work().grant.key, canary.work().outputs[0]));
                } catch (const Refused& refused) {
                    return refused.status == 503;
                }
                return false;
            },
            3'000, 50);
        QVERIFY(full);

        WorkerProcess alice({lab.invite(), WorkerProcess::modest_options("alice"), {}, {}});
        const ProductFiles product(lab.files(), "p", random_matrix(DType::f32, 2 * 2048, 2, 3),
                                   random_matrix(DType::f32, 2, 4096, 4));
        const uint64_t id = lab.submit_product(product.a(), product.b(), product.output(),
                                               {{"verify", "recompute"}}, "2048x4096");
        const Json status = lab.wait_for_job(id, 120'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        uint64_t cut_off = 0;
        for (const auto& loris : lorises) cut_off += loris->cut_off();
        QVERIFY(cut_off > 0);
        lab.ask("job.stop", {{"id", bait_job}});
        QVERIFY(lab.running());
    }

    void an_upload_that_was_cut_goes_on_where_it_was() {
        LabProcess lab;
        TcpProxy proxy(lab.port());
        InvitationLink link = InvitationLink::parse(lab.invite());
        link.port = proxy.port();
        WorkerProcess worker({link.text(), WorkerProcess::modest_options("far away"), {}, {}});
        lab.wait_for_contributors(1);
        const ProductFiles product(lab.files(), "p", random_matrix(DType::f32, 2048, 8, 1),
                                   random_matrix(DType::f32, 8, 1024, 2));
        constexpr uint64_t tile_bytes = 8 * mebibyte;
        proxy.limit_rate(2 * mebibyte);
        const uint64_t before = proxy.bytes_up();
        const uint64_t id = lab.submit_product(product.a(), product.b(), product.output(),
                                               {{"verify", "recompute"}}, "2048x1024");
        QVERIFY(wait_until([&] { return proxy.bytes_up() > before + tile_bytes * 5 / 8; }));
        proxy.refuse();
        // Two minutes; the lab gives up what nobody goes on with after a day.
        std::this_thread::sleep_for(std::chrono::seconds(in_form(2, 130)));
        proxy.accept_again();
        const Json status = lab.wait_for_job(id, 180'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        QCOMPARE(status["computed_by"].size(), size_t{1});
        // From the start it would have been five eighths more.
        const uint64_t carried = proxy.bytes_up() - before;
        QVERIFY2(carried < tile_bytes * 3 / 2, fmt::format("{} bytes went up\n{}\n{}\n{}", carried,
                                                           lab.history(id), worker.log(), lab.log())
                                                   .c_str());
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestSlowUploads)
#include "test_slow_uploads.moc"
