// What the HTTPS service answers to each request, right and wrong ones.
#include <QTest>
#include <latch>
#include <thread>

#include "tests/unit/labcli/fake_door.hpp"

namespace goblin::lab {

namespace {

ErrorReply error_of(const test::HttpReply& reply) {
    return decode_message<ErrorReply>(reply.body);
}

}  // namespace

class TestServiceRoutes : public QObject {
    Q_OBJECT

    LabAtTest lab_;

  private slots:
    void initTestCase() { lab_.start(); }

    void the_front_page_says_who_the_lab_is() {
        test::HttpsClient client(lab_.client_settings());
        const test::HttpReply reply = client.request("GET", "/");
        QCOMPARE(reply.status, 200);
        QCOMPARE(reply.header("content-type"), std::string("text/plain; charset=utf-8"));
        const std::string text(reply.body.begin(), reply.body.end());
        QVERIFY(text.find("A lab\nSums\nContact: lab@example.org\n") == 0);
    }

    void lab_information_carries_the_versions() {
        const LabInfo info = lab_.contributor().lab_info();
        QCOMPARE(info.versions.protocol, protocol_version);
        QCOMPARE(info.name, std::string("A lab"));
    }

    void an_enrolment_gets_a_credential_and_a_wrong_token_a_refusal_with_the_time_to_wait() {
        auto contributor = lab_.contributor();
        EnrolRequest request;
        request.token = {1, 2, 3};
        QVERIFY(contributor.enrol(request).credential == lab_.door.credential);
        request.token = {4};
        try {
            contributor.enrol(request);
            QFAIL("a wrong token was accepted");
        } catch (const test::Refused& refused) {
            QCOMPARE(refused.status, 403);
            QCOMPARE(refused.error.code, std::string("token"));
            QCOMPARE(refused.retry_after, std::string("3"));
        }
    }

    void an_exchange_brings_results_and_their_receipts_over_one_connection() {
        auto contributor = lab_.contributor();
        for (int i = 0; i < 5; ++i) {
            ExchangeRequest request;
            for (int k = 0; k < 64; ++k)
                request.results.push_back({random_bytes<AssignmentId>(), {}, {Digest{}}, {}, 5, {}});
            const ExchangeReply reply = contributor.exchange(request);
            QCOMPARE(reply.acknowledged.size(), size_t{64});
            QVERIFY(reply.acknowledged[63].assignment == request.results[63].assignment);
        }
        QVERIFY(contributor.client().connected());
    }

    void an_unknown_path_a_wrong_method_and_a_missing_credential_are_refused_with_a_code() {
        test::HttpsClient client(lab_.client_settings());
        const auto expect = [&](const test::HttpReply& reply, int status, std::string_view code) {
            QCOMPARE(reply.status, status);
            QCOMPARE(reply.header("content-type"), std::string("application/cbor"));
            QCOMPARE(error_of(reply).code, std::string(code));
            QVERIFY(!error_of(reply).message.empty());
        };
        expect(client.request("GET", "/v2/lab"), 404, "path");
        expect(client.request("GET", "/v1/blobs/../../etc/passwd"), 404, "path");
        expect(client.request("DELETE", "/v1/lab"), 405, "method");
        expect(client.request("GET", "/v1/exchange"), 405, "method");
        expect(client.request("POST", "/v1/exchange"), 401, "credential");
        expect(client.request("POST", "/v1/exchange", "Authorization: Basic YTpi\r\n"), 401, "credential");
        expect(client.request("POST", "/v1/exchange", "Authorization: Goblin 12\r\n"), 401, "credential");
        expect(client.request("GET", "/v1/blobs/" + std::string(64, 'a')), 401, "credential");
    }

    void another_version_is_told_which_side_to_update_before_anything_else_is_read() {
        auto contributor = lab_.contributor();
        ExchangeRequest request;
        request.versions.protocol = protocol_version + 1;
        Bytes newer = encode_message(request);
        newer.push_back(0xf6);  // what else a newer version may say
        const test::HttpReply reply =
            contributor.client().request("POST", "/v1/exchange", contributor.authorization(), newer);
        QCOMPARE(reply.status, 426);
        QCOMPARE(error_of(reply).code, std::string("version"));
        QVERIFY(error_of(reply).message.find("update the lab node") != std::string::npos);
    }

    void a_message_that_is_none_is_refused_with_the_readers_words() {
        auto contributor = lab_.contributor();
        const auto status_of = [&](const Bytes& body) {
            const auto reply =
                contributor.client().request("POST", "/v1/exchange", contributor.authorization(), body);
            return reply.status == 400 && error_of(reply).code == "message" &&
                   error_of(reply).message.starts_with("message: expected");
        };
        QVERIFY(status_of({}));
        QVERIFY(status_of({0xff, 0x00}));
        QVERIFY(status_of(Bytes(1'000'000, 0x81)));  // lists in lists, 10^6 deep
        Bytes longer = encode_message(ExchangeRequest{});
        longer.push_back(0);
        QVERIFY(status_of(longer));
        QVERIFY(contributor.client().connected());
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceRoutes)
#include "test_service_routes.moc"
