// Peers that are slow, greedy, malformed or hostile: each meets its limit, and honest ones go on working.
#include <QTest>

#include "core/work/hex.hpp"
#include "tests/unit/labcli/fake_door.hpp"

namespace goblin::lab {

namespace {

using namespace std::string_view_literals;

ErrorReply error_of(const test::HttpReply& reply) {
    return decode_message<ErrorReply>(reply.body);
}

}  // namespace

class TestServiceLimits : public QObject {
    Q_OBJECT

    std::unique_ptr<LabAtTest> lab_;

    // A connection that has sent `text`.
    test::HttpsClient sent(std::string_view text) {
        test::HttpsClient client(lab_->client_settings());
        client.connect();
        client.send(text);
        return client;
    }
    int status_after(std::string_view text) { return sent(text).receive().status; }
    std::string exchange_head(std::string_view length, std::string_view more = {}) const {
        return fmt::format(
            "POST /v1/exchange HTTP/1.1\r\nHost: lab\r\n{}Authorization: Goblin {}\r\nContent-Length: "
            "{}\r\n\r\n",
            more, to_hex(lab_->door.credential), length);
    }
    bool honest_work_goes_on(const std::string& from = {}) {
        auto settings = lab_->client_settings();
        settings.from = from;
        auto contributor = lab_->contributor(settings);
        const uint64_t before = lab_->door.exchanges;
        for (int i = 0; i < 3; ++i) contributor.exchange(ExchangeRequest{});
        return lab_->door.exchanges == before + 3;
    }

  private slots:
    void init() { lab_ = std::make_unique<LabAtTest>(); }
    void cleanup() { lab_.reset(); }

    void a_head_that_takes_too_long_is_cut_off_however_steadily_it_trickles() {
        lab_->limits.header_ms = 300;
        lab_->start();
        auto loris = sent("GET / HTTP/1.1\r\n");
        bool closed = false;
        for (int i = 0; i < 100 && !closed; ++i) {
            try {
                loris.send("X-More: 1\r\n");
            } catch (const Error&) {
            }
            closed = loris.closes_within(20);
        }
        QVERIFY(closed);
        QVERIFY(honest_work_goes_on());
    }

    void a_head_of_more_than_16_kibibytes_is_refused() {
        lab_->start();
        const std::string filler(16 << 10, 'x');
        QCOMPARE(status_after("GET / HTTP/1.1\r\nHost: lab\r\nX: " + filler + "\r\n\r\n"), 431);
        const std::string most = "GET / HTTP/1.1\r\nHost: lab\r\nX: ";
        QCOMPARE(status_after(most + std::string((16 << 10) - most.size() - 4, 'x') + "\r\n\r\n"), 200);
    }

    void garbage_and_half_a_handshake_end_in_time() {
        lab_->limits.handshake_ms = 300;
        lab_->start();
        test::HttpsClient garbage(lab_->client_settings());
        garbage.connect_without_tls();
        garbage.send("GET / HTTP/1.1\r\nHost: lab\r\n\r\n");
        QVERIFY(garbage.closes_within(5'000));
        test::HttpsClient silent(lab_->client_settings());
        silent.connect_without_tls();
        silent.send(std::string_view("\x16\x03\x01\x02", 4));  // a record's first bytes
        QVERIFY(silent.closes_within(5'000));
        QTRY_COMPARE(lab_->service->open_connections(), uint64_t{0});
    }

    void an_idle_connection_is_closed_after_a_while() {
        lab_->limits.idle_ms = 200;
        lab_->start();
        test::HttpsClient client(lab_->client_settings());
        QCOMPARE(client.request("GET", "/").status, 200);
        QVERIFY(client.closes_within(5'000));
        QCOMPARE(client.request("GET", "/").status, 200);  // on a new one
    }

    void a_body_slower_than_the_least_rate_is_cut_off() {
        lab_->limits.rate_grace_ms = 200;
        lab_->start();
        auto slow = sent(exchange_head("10000"));
        bool closed = false;
        for (int i = 0; i < 200 && !closed; ++i) {
            try {
                slow.send("x");
            } catch (const Error&) {
            }
            closed = slow.closes_within(10);
        }
        QVERIFY(closed);
    }

    void a_body_that_stops_moving_is_cut_off_though_it_was_fast() {
        lab_->limits.silence_ms = 200;
        lab_->start();
        auto silent = sent(exchange_head("2000000"));
        silent.send(std::string(1'500'000, 'x'));
        QVERIFY(silent.closes_within(5'000));
    }

    void a_reader_that_stops_reading_is_cut_off() {
        lab_->limits.silence_ms = 300;
        BytesOfBlob& blob = lab_->door.blobs[Digest{}];
        blob.resize(32 << 20);
        fill_random({reinterpret_cast<uint8_t*>(blob.data()), blob.size()});
        lab_->start();
        auto settings = lab_->client_settings();
        settings.receive_buffer_bytes = 64 << 10;
        auto contributor = lab_->contributor(settings);
        contributor.client().connect();
        contributor.client().send("GET /v1/blobs/" + Digest{}.hex() + " HTTP/1.1\r\nHost: lab\r\n" +
                                  contributor.authorization() + "\r\n");
        QTRY_VERIFY(lab_->door.leaves_read > 0);
        QTRY_COMPARE(lab_->service->open_connections(), uint64_t{0});
    }

    void bodies_of_the_wrong_length_are_refused() {
        lab_->start();
        QCOMPARE(status_after(exchange_head(std::to_string(limits::exchange_bytes + 1))), 413);
        QCOMPARE(status_after(exchange_head("-1")), 400);
        QCOMPARE(status_after(exchange_head("1x")), 400);
        QCOMPARE(status_after(exchange_head("99999999999999999999")), 400);
        QCOMPARE(status_after(exchange_head("5\r\nContent-Length: 6")), 400);
        QCOMPARE(status_after("POST /v1/enrol HTTP/1.1\r\nHost: lab\r\nContent-Length: 65537\r\n\r\n"), 413);
        QCOMPARE(status_after("POST /v1/enrol HTTP/1.1\r\nHost: lab\r\n\r\n"), 411);
        QCOMPARE(status_after("GET / HTTP/1.1\r\nHost: lab\r\nContent-Length: 5\r\n\r\nabcde"), 413);
    }

    void a_body_of_unsaid_length_is_refused_and_two_ways_to_say_it_too() {
        lab_->start();
        const std::string head = "POST /v1/enrol HTTP/1.1\r\nHost: lab\r\n";
        QCOMPARE(status_after(head + "Transfer-Encoding: chunked\r\n\r\n"), 411);
        QCOMPARE(status_after(head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), 400);
        QCOMPARE(status_after(head + "Content-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n"), 400);
        QCOMPARE(status_after(head + "Transfer-Encoding: identity\r\n\r\n"), 411);
    }

    void what_is_no_http_1_1_request_is_refused() {
        lab_->start();
        QCOMPARE(status_after("GET / HTTP/1.0\r\nHost: lab\r\n\r\n"), 505);
        QCOMPARE(status_after("GET / HTTP/1.1\r\n\r\n"), 400);
        QCOMPARE(status_after("GET / HTTP/1.1\r\nHost: lab\r\nHost: other\r\n\r\n"), 400);
        QCOMPARE(status_after("GET\r\n\r\n"), 400);
        QCOMPARE(status_after("GET / HTTP/1.1\r\nHost: lab\r\nA b: c\r\n\r\n"), 400);
        QCOMPARE(status_after("GET /\0 HTTP/1.1\r\nHost: lab\r\n\r\n"sv), 400);
        QCOMPARE(status_after("\x81\x81\x81\r\n\r\n"), 400);
        QCOMPARE(status_after("POST / HTTP/1.1\r\nHost: lab\r\nExpect: miracles\r\n\r\n"), 417);
        QVERIFY(honest_work_goes_on());
    }

    void requests_sent_at_once_are_answered_in_order_and_a_body_may_ask_leave() {
        lab_->start();
        auto client = sent(
            "GET / HTTP/1.1\r\nHost: lab\r\n\r\nGET /v1/lab HTTP/1.1\r\nHost: lab\r\n\r\nGET /no "
            "HTTP/1.1\r\nHost: "
            "lab\r\nConnection: close\r\n\r\n");
        QCOMPARE(client.receive().header("content-type"), std::string("text/plain; charset=utf-8"));
        QCOMPARE(decode_message<LabInfo>(client.receive().body).name, std::string("A lab"));
        QCOMPARE(client.receive().status, 404);
        QVERIFY(client.closes_within(5'000));

        const Bytes body = encode_message(ExchangeRequest{});
        auto asking = sent(exchange_head(std::to_string(body.size()), "Expect: 100-continue\r\n"));
        QCOMPARE(asking.receive().status, 100);
        asking.send(body);
        QCOMPARE(asking.receive().status, 200);
    }

    void an_address_gets_64_connections_and_no_more() {
        lab_->start();
        std::vector<test::HttpsClient> open;
        for (uint64_t i = 0; i < limits::connections_per_address; ++i) {
            open.emplace_back(lab_->client_settings());
            open.back().connect();
        }
        test::HttpsClient more(lab_->client_settings());
        QVERIFY_THROWS_EXCEPTION(Error, more.connect());
        QVERIFY(honest_work_goes_on("127.0.0.2"));
        open.pop_back();
        QTRY_VERIFY(lab_->service->open_connections() < limits::connections_per_address);
        more.connect();
    }

    void a_thousand_idle_connections_hinder_nobody() {
        lab_->start();
        std::vector<test::HttpsClient> idle;
        for (int i = 0; i < 1'000; ++i) {
            auto settings = lab_->client_settings();
            settings.from = fmt::format("127.0.1.{}", 1 + i / 60);
            idle.emplace_back(settings);
            idle.back().connect_without_tls();
        }
        QTRY_COMPARE(lab_->service->open_connections(), uint64_t{1'000});
        QVERIFY(honest_work_goes_on());
        QVERIFY(lab_->service->open_connections() >= 1'000);
    }

    void when_connections_run_out_the_longest_idle_gives_way() {
        lab_->limits.connections_total = 16;
        lab_->start();
        std::vector<test::HttpsClient> idle;
        for (int i = 0; i < 40; ++i) {
            idle.emplace_back(lab_->client_settings());
            idle.back().connect();
            QCOMPARE(idle.back().request("GET", "/").status, 200);
        }
        QVERIFY(lab_->service->open_connections() <= 16);
        QVERIFY(idle.front().closes_within(1'000));
        QVERIFY(honest_work_goes_on());
    }

    void large_bodies_share_a_bounded_memory_and_small_ones_go_on() {
        lab_->limits.buffered_bytes = 4 << 20;  // so one address has a mebibyte
        lab_->start();
        auto greedy = sent(exchange_head("900000"));
        greedy.send(std::string(800'000, 'x'));
        QTest::qWait(100);
        const Bytes large(900'000, 0x81);
        auto second = lab_->contributor();
        const auto refused = second.client().request("POST", "/v1/exchange", second.authorization(), large);
        QCOMPARE(refused.status, 503);
        QCOMPARE(error_of(refused).code, std::string("busy"));
        QVERIFY(honest_work_goes_on());
        greedy.disconnect();
        QTRY_COMPARE(second.client().request("POST", "/v1/exchange", second.authorization(), large).status,
                     400);
    }

    void replies_that_nobody_reads_count_against_new_bodies_not_against_small_ones() {
        lab_->limits.buffered_bytes = 4 << 20;
        lab_->door.on_exchange = [](const Caller&, ExchangeRequest request, Done<ExchangeReply> done) {
            ExchangeReply reply;
            if (request.state == "large") reply.tasks.resize(240);
            for (Grant& grant : reply.tasks) {
                grant.task.inputs.resize(1);
                grant.task.inputs[0].bytes = Bytes(limits::inline_tensor_bytes, 1);
            }
            done(std::move(reply));
        };
        lab_->start();
        auto settings = lab_->client_settings();
        settings.receive_buffer_bytes = 64 << 10;
        settings.from = "127.0.0.2";
        test::HttpsClient deaf(settings);
        ExchangeRequest request;
        request.state = "large";
        const Bytes body = encode_message(request);
        deaf.connect();
        deaf.send(exchange_head(std::to_string(body.size())));
        deaf.send(body);
        QTRY_VERIFY(lab_->door.exchanges > 0);
        QTest::qWait(100);
        auto contributor = lab_->contributor();
        const Bytes large(500'000, 0x81);
        const auto status = [&] {
            return contributor.client()
                .request("POST", "/v1/exchange", contributor.authorization(), large)
                .status;
        };
        QCOMPARE(status(), 503);
        QVERIFY(honest_work_goes_on());
        deaf.disconnect();
        QTRY_COMPARE(status(), 400);
    }

    void a_length_that_is_only_claimed_takes_no_memory() {
        lab_->limits.buffered_bytes = 1 << 20;
        lab_->start();
        std::vector<test::HttpsClient> claiming;
        for (int i = 0; i < 20; ++i) claiming.push_back(sent(exchange_head("16000000")));
        QVERIFY(honest_work_goes_on());
        const Bytes medium = [] {
            ExchangeRequest request;
            for (int i = 0; i < 1'000; ++i) request.results.push_back({{}, {}, {Digest{}}, {}, 5, {}});
            return encode_message(request);
        }();
        QVERIFY(medium.size() > 100'000);
        auto contributor = lab_->contributor();
        QCOMPARE(
            contributor.client().request("POST", "/v1/exchange", contributor.authorization(), medium).status,
            200);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceLimits)
#include "test_service_limits.moc"
