// From listening to stopping: addresses, TLS versions, long waits, clients that vanish, answers that come
// late.
#include <openssl/ssl.h>

#include <QTest>
#include <chrono>
#include <latch>
#include <thread>

#include "tests/unit/labcli/fake_door.hpp"

namespace goblin::lab {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

bool has_ipv6() {
    test::HttpsClient::Settings settings;
    settings.address = "::1";
    settings.port = 1;
    settings.from = "::1";
    try {
        test::HttpsClient(settings).connect_without_tls();
    } catch (const Error& error) {
        return std::string(error.what()).find("refused") != std::string::npos;
    }
    return true;
}

}  // namespace

class TestServiceLife : public QObject {
    Q_OBJECT

    std::unique_ptr<LabAtTest> lab_;
    std::mutex mutex_;
    std::vector<Done<ExchangeReply>> waiting_;  // exchanges that the lab hasn't answered, guarded by mutex_

    // Exchanges wait until answer_all().
    void start_waiting_lab(uint64_t io_threads = 1) {
        lab_->door.on_exchange = [this](const Caller&, ExchangeRequest, Done<ExchangeReply> done) {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(done));
        };
        lab_->start(io_threads);
    }
    size_t waiting() {
        const std::lock_guard lock(mutex_);
        return waiting_.size();
    }
    void answer_all() {
        const std::lock_guard lock(mutex_);
        for (const auto& done : waiting_) done(ExchangeReply{});
        waiting_.clear();
    }
    // A contributor that asks on a thread of its own; `ended` tells how.
    struct Asking {
        std::atomic<bool> answered = false;
        std::atomic<bool> failed = false;
        std::thread thread;
        ~Asking() { thread.join(); }
    };
    std::unique_ptr<Asking> ask() {
        auto asking = std::make_unique<Asking>();
        asking->thread = std::thread([&asked = *asking, contributor = lab_->contributor()]() mutable {
            try {
                contributor.exchange(ExchangeRequest{});
                asked.answered = true;
            } catch (const Error&) {
                asked.failed = true;
            }
        });
        return asking;
    }
    HttpsService::Settings listening_at(const std::string& address, uint16_t port) {
        HttpsService::Settings settings;
        settings.address = address;
        settings.port = port;
        return settings;
    }

  private slots:
    void init() { lab_ = std::make_unique<LabAtTest>(); }
    void cleanup() {
        waiting_.clear();
        lab_.reset();
    }

    void tls_1_3_and_1_2_are_spoken_and_nothing_older() {
        lab_->start();
        auto settings = lab_->client_settings();
        for (const auto& [version, name] :
             {std::pair(TLS1_3_VERSION, "TLSv1.3"), std::pair(TLS1_2_VERSION, "TLSv1.2")}) {
            settings.tls_version = version;
            auto contributor = lab_->contributor(settings);
            contributor.exchange(ExchangeRequest{});
            QCOMPARE(contributor.client().tls_version(), std::string(name));
        }
        settings.tls_version = TLS1_1_VERSION;
        QVERIFY_THROWS_EXCEPTION(Error, test::HttpsClient(settings).connect());
    }

    void a_client_that_pinned_another_key_sends_nothing() {
        lab_->start();
        auto settings = lab_->client_settings();
        settings.lab_key.bytes[0] ^= 1;
        QVERIFY_THROWS_EXCEPTION(Error, lab_->contributor(settings).exchange(ExchangeRequest{}));
        QCOMPARE(lab_->door.exchanges.load(), uint64_t{0});
    }

    void all_addresses_of_both_families_are_listened_at() {
        // The lab tells each caller what it saw.
        lab_->door.on_exchange = [&](const Caller& caller, ExchangeRequest, Done<ExchangeReply> done) {
            ExchangeReply reply;
            reply.notice = caller.peer.address + (caller.peer.loopback ? " loopback" : "");
            done(std::move(reply));
        };
        lab_->service = std::make_unique<HttpsService>(test_certificate(), lab_->door, listening_at("*", 0));
        QCOMPARE(lab_->contributor().exchange(ExchangeRequest{}).notice, std::string("127.0.0.1 loopback"));
        if (!has_ipv6()) return;
        auto settings = lab_->client_settings();
        settings.address = "::1";
        QCOMPARE(lab_->contributor(settings).exchange(ExchangeRequest{}).notice, std::string("::1 loopback"));
    }

    void a_port_in_use_and_an_address_that_is_none_are_explained() {
        lab_->start();
        try {
            HttpsService(test_certificate(), lab_->door, listening_at("127.0.0.1", lab_->service->port()));
            QFAIL("two services listen at one port");
        } catch (const Error& error) {
            QVERIFY(error.kind() == ErrorKind::network);
            QVERIFY(std::string(error.what()).find("choose another port with --listen") != std::string::npos);
        }
        QVERIFY_THROWS_EXCEPTION(Error,
                                 HttpsService(test_certificate(), lab_->door, listening_at("nowhere", 0)));
        QVERIFY_THROWS_EXCEPTION(Error,
                                 HttpsService(test_certificate(), lab_->door, listening_at("192.0.2.1", 0)));
    }

    void an_exchange_waits_for_the_lab_and_no_longer_than_allowed() {
        lab_->limits.exchange_wait_ms = 1'234;
        std::atomic<uint64_t> wait_ms = 0;
        lab_->door.on_exchange = [&](const Caller&, ExchangeRequest request, Done<ExchangeReply> done) {
            wait_ms = request.wait_ms;
            std::thread([done = std::move(done)] {
                std::this_thread::sleep_for(50ms);
                done(ExchangeReply{});
            }).detach();
        };
        lab_->start();
        ExchangeRequest request;
        request.wait_ms = UINT64_MAX;
        lab_->contributor().exchange(request);
        QCOMPARE(wait_ms.load(), uint64_t{1'234});
    }

    void a_contributor_that_hangs_up_while_it_waits_is_let_go_at_once() {
        start_waiting_lab();
        for (const bool politely : {true, false}) {
            auto contributor = lab_->contributor();
            contributor.client().connect();
            const Bytes body = encode_message(ExchangeRequest{});
            contributor.client().send("POST /v1/exchange HTTP/1.1\r\nHost: lab\r\n" +
                                      contributor.authorization() +
                                      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n");
            contributor.client().send(body);
            QTRY_COMPARE(waiting(), size_t{1});
            QCOMPARE(lab_->service->open_connections(), uint64_t{1});
            if (politely)
                contributor.client().disconnect();
            else
                contributor.client().reset();
            QTRY_COMPARE(lab_->service->open_connections(), uint64_t{0});
            answer_all();  // too late, and harmless
        }
    }

    void a_service_that_stops_lets_answers_out_and_hangs_up_within_two_seconds() {
        start_waiting_lab();
        const auto asking = ask();
        QTRY_COMPARE(waiting(), size_t{1});
        test::HttpsClient idle(lab_->client_settings());
        QCOMPARE(idle.request("GET", "/").status, 200);
        std::thread late([this] {
            std::this_thread::sleep_for(100ms);
            answer_all();
        });
        const auto began = Clock::now();
        lab_->service->stop();
        QVERIFY(Clock::now() - began < 2s);
        late.join();
        QTRY_VERIFY(asking->answered);
        QVERIFY(idle.closes_within(100));
        QVERIFY_THROWS_EXCEPTION(Error, idle.connect());
    }

    void a_lab_that_never_answers_cannot_keep_the_service_from_stopping() {
        start_waiting_lab();
        const auto asking = ask();
        QTRY_COMPARE(waiting(), size_t{1});
        const auto began = Clock::now();
        lab_->service.reset();
        QVERIFY(Clock::now() - began < 2s);
        answer_all();  // after the service is gone
        QTRY_VERIFY(asking->failed);
    }

    void a_lab_that_does_not_answer_for_long_loses_the_connection_not_the_service() {
        lab_->limits.answer_ms = 200;
        start_waiting_lab();
        const auto asking = ask();
        QTRY_VERIFY(asking->failed);
        QCOMPARE(test::HttpsClient(lab_->client_settings()).request("GET", "/").status, 200);
    }

    void what_comes_from_outside_is_harmless_in_the_log() {
        QCOMPARE(escaped("a lab\n\x1b[2J\"'\\ \xc3\xbc"),
                 std::string(R"(a lab\x0a\x1b[2J\x22\x27\x5c \xc3\xbc)"));
        QCOMPARE(escaped(std::string(1'000, 'x')).size(), size_t{256 + 3});
    }

    void several_io_threads_share_the_connections() {
        start_waiting_lab(3);
        std::vector<std::unique_ptr<Asking>> asking;
        for (int i = 0; i < 12; ++i) asking.push_back(ask());
        QTRY_COMPARE(waiting(), size_t{12});
        answer_all();
        for (const auto& asked : asking) QTRY_VERIFY(asked->answered);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceLife)
#include "test_service_life.moc"
