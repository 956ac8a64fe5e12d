// One HTTPS connection: what it trusts, what it sends, and what it makes of bad answers.
#include <QSslConfiguration>
#include <QTcpServer>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/http_connection.hpp"
#include "tests/unit/worker/fake_https.hpp"

using namespace goblin;
using namespace goblin::test;
using worker::HttpConnection;
using worker::HttpHandlers;
using worker::HttpRequest;
using worker::LabAddress;
using worker::ResponseHead;

namespace {

struct Outcome {
    bool ended = false;
    int status = 0;
    QByteArray body;
    std::optional<ErrorKind> error;
    QString message;
};

// Sends and waits for the end.
Outcome ask(HttpConnection& connection, HttpRequest request) {
    Outcome outcome;
    HttpHandlers handlers;
    handlers.head = [&](const ResponseHead& head) { outcome.status = head.status; };
    handlers.body = [&](std::span<const uint8_t> piece) {
        outcome.body.append(reinterpret_cast<const char*>(piece.data()),
                            static_cast<qsizetype>(piece.size()));
    };
    handlers.done = [&] { outcome.ended = true; };
    handlers.failed = [&](const Error& error) {
        outcome.ended = true;
        outcome.error = error.kind();
        outcome.message = error.what();
    };
    connection.send(std::move(request), std::move(handlers));
    [&] { QTRY_VERIFY_WITH_TIMEOUT(outcome.ended, 10'000); }();
    return outcome;
}

HttpRequest request_with_secret() {
    HttpRequest request;
    request.method = "POST";
    request.target = "/v1/exchange";
    request.fields.push_back({"Authorization", "Goblin secret"});
    request.body = "secret body";
    return request;
}

// A connection with a pin of its own, in a fresh folder.
struct Client {
    explicit Client(const LabAddress& lab) : address(lab) {}
    operator HttpConnection&() { return connection; }
    void send(HttpRequest request, HttpHandlers handlers) {
        connection.send(std::move(request), std::move(handlers));
    }
    void abort() { connection.abort(); }
    bool busy() const { return connection.busy(); }
    std::filesystem::path folder() const { return (files.path() + "/lab").toStdString(); }

    LabAddress address;
    QTemporaryDir files;
    worker::Log log{worker::LogLevel::error, [](std::string_view) {},
                    [] { return std::chrono::system_clock::now(); }};
    worker::LabPin pin{folder(), address.key, log};
    HttpConnection connection{address, pin};
};

LabAddress address_of(const FakeHttps& server, const Digest& key) {
    return {server.serverAddress().toString().toStdString(), server.serverPort(), key};
}

void echo(const FakeRequest& request, const FakeHttps::Answer& answer) {
    FakeReply reply;
    reply.body = request.body;
    answer(reply);
}

}  // namespace

class TestHttpConnection : public QObject {
    Q_OBJECT
  private slots:
    void the_key_of_the_link_is_enough_whatever_the_certificate_says_otherwise() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, certificate.key_digest));
        const Outcome outcome = ask(connection, request_with_secret());
        QCOMPARE(outcome.status, 200);
        QCOMPARE(outcome.body, "secret body");
    }

    void dates_do_not_matter() {
        for (const auto& [begin, end] : {std::pair(-400, -35), std::pair(1, 365)}) {
            const Certificate certificate = make_certificate(begin, end);
            FakeHttps server(certificate, echo);
            Client connection(address_of(server, certificate.key_digest));
            QCOMPARE(ask(connection, request_with_secret()).status, 200);
        }
    }

    void a_server_with_another_key_gets_not_one_byte() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, make_certificate().key_digest));
        const Outcome outcome = ask(connection, request_with_secret());
        QCOMPARE(outcome.error, ErrorKind::denied);
        QVERIFY2(outcome.message.contains("expected the lab's key"), qPrintable(outcome.message));
        QTest::qWait(200);
        QVERIFY(server.connections >= 1);
        QCOMPARE(server.plain_bytes, 0);
        QCOMPARE(server.requests.size(), size_t{0});
    }

    void a_certificate_that_the_system_trusts_is_refused_all_the_same() {
        // A publicly valid certificate raises no sslErrors: here the server's own is made trusted.
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        QSslConfiguration trusting = QSslConfiguration::defaultConfiguration();
        const QSslConfiguration before = trusting;
        trusting.addCaCertificate(certificate.certificate);
        trusting.setPeerVerifyMode(QSslSocket::VerifyNone);
        QSslConfiguration::setDefaultConfiguration(trusting);
        Client connection(address_of(server, make_certificate().key_digest));
        const Outcome outcome = ask(connection, request_with_secret());
        QSslConfiguration::setDefaultConfiguration(before);
        QCOMPARE(outcome.error, ErrorKind::denied);
        QTest::qWait(100);
        QCOMPARE(server.plain_bytes, 0);
    }

    void a_connection_is_kept_and_used_again() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, certificate.key_digest));
        for (int i = 0; i < 5; ++i) QCOMPARE(ask(connection, request_with_secret()).status, 200);
        QCOMPARE(server.connections, 1);
    }

    void a_kept_connection_that_was_closed_meanwhile_is_replaced_unnoticed() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, certificate.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        server.break_connections();
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        QCOMPARE(server.connections, 2);
    }

    void a_key_is_checked_on_every_connection_anew() {
        const Certificate certificate = make_certificate();
        auto server = std::make_unique<FakeHttps>(certificate, echo);
        const LabAddress address = address_of(*server, certificate.key_digest);
        Client connection(address);
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        server.reset();
        FakeHttps impostor(make_certificate(), echo);
        impostor.close();
        QVERIFY(impostor.listen(QHostAddress::LocalHost, address.port));
        QCOMPARE(ask(connection, request_with_secret()).error, ErrorKind::denied);
        QCOMPARE(impostor.plain_bytes, 0);
    }

    void a_key_that_the_pinned_one_signed_is_pinned_instead_and_kept() {
        const Certificate old = make_certificate();
        const Certificate renewed = make_successor(make_successor(old));
        FakeHttps server(renewed, echo);
        Client connection(address_of(server, old.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        QVERIFY(connection.pin.key() == renewed.key_digest);
        QVERIFY(worker::load_lab_keys(connection.folder(), old.key_digest).front() == renewed.key_digest);
        // The old one is a stranger's from now on, and the new one needs no chain.
        server.show(old);
        server.break_connections();
        const qint64 before = server.plain_bytes;
        QCOMPARE(ask(connection, request_with_secret()).error, ErrorKind::denied);
        QCOMPARE(server.plain_bytes, before);
        Certificate alone = renewed;
        alone.older.clear();
        server.show(alone);
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
    }

    void a_kept_connection_is_left_when_another_one_met_a_newer_key() {
        const Certificate old = make_certificate();
        const Certificate renewed = make_successor(old);
        FakeHttps server(old, echo);
        Client connection(address_of(server, old.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        server.show(renewed);
        HttpConnection other(connection.address, connection.pin);
        QCOMPARE(ask(other, request_with_secret()).status, 200);
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        QCOMPARE(server.connections, 3);
    }

    void a_chain_that_does_not_lead_to_the_pinned_key_gets_not_one_byte_data() {
        QTest::addColumn<int>("kind");
        QTest::addRow("foreign chain") << 0;
        QTest::addRow("the old certificate without its signature") << 1;
        QTest::addRow("broken in the middle") << 2;
        QTest::addRow("reversed") << 3;
        QTest::addRow("too long") << 4;
    }
    void a_chain_that_does_not_lead_to_the_pinned_key_gets_not_one_byte() {
        QFETCH(int, kind);
        const Certificate old = make_certificate();
        Certificate shown = make_successor(make_certificate());
        if (kind == 1) shown.older = {old.certificate};
        if (kind == 2) {
            Certificate middle = make_certificate();
            middle.older = {old.certificate};
            shown = make_successor(middle);
        }
        Digest pinned = old.key_digest;
        if (kind == 3) {
            const Certificate newest = make_successor(old);
            shown = old;
            shown.older = {newest.certificate};
            pinned = newest.key_digest;
        }
        if (kind == 4) {
            shown = old;
            for (int i = 0; i < 8; ++i) shown = make_successor(shown);
        }
        FakeHttps server(shown, echo);
        Client connection(address_of(server, pinned));
        QCOMPARE(ask(connection, request_with_secret()).error, ErrorKind::denied);
        QTest::qWait(100);
        QVERIFY(server.connections >= 1);
        QCOMPARE(server.plain_bytes, 0);
        QVERIFY(connection.pin.key() == pinned);
        QVERIFY(!std::filesystem::exists(connection.folder()));
    }

    void the_longest_chain_is_followed() {
        const Certificate old = make_certificate();
        Certificate newest = old;
        for (int i = 0; i < 7; ++i) newest = make_successor(newest);
        FakeHttps server(newest, echo);
        Client connection(address_of(server, old.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
    }

    void a_new_key_that_cannot_be_kept_is_not_used() {
        const Certificate old = make_certificate();
        FakeHttps server(make_successor(old), echo);
        Client connection(address_of(server, old.key_digest));
        std::ofstream(connection.folder()) << "in the way";
        QCOMPARE(ask(connection, request_with_secret()).error, ErrorKind::io);
        QTest::qWait(100);
        QCOMPARE(server.plain_bytes, 0);
    }

    void a_redirect_is_an_answer_and_is_not_followed() {
        const Certificate certificate = make_certificate();
        FakeHttps elsewhere(certificate, echo);
        FakeHttps server(certificate, [&](const FakeRequest&, const FakeHttps::Answer& answer) {
            FakeReply reply;
            reply.status = 302;
            reply.fields.push_back("Location: https://127.0.0.1:" + std::to_string(elsewhere.serverPort()) +
                                   "/");
            answer(reply);
        });
        Client connection(address_of(server, certificate.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 302);
        QTest::qWait(100);
        QCOMPARE(elsewhere.connections, 0);
    }

    void a_silent_server_is_given_up() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        server.silent = true;
        Client connection(address_of(server, certificate.key_digest));
        HttpRequest request = request_with_secret();
        request.silence_ms = 300;
        const Outcome outcome = ask(connection, std::move(request));
        QCOMPARE(outcome.error, ErrorKind::network);
        QVERIFY2(outcome.message.contains("silence"), qPrintable(outcome.message));
    }

    void a_server_that_speaks_no_tls_gets_no_request() {
        QTcpServer server;
        QVERIFY(server.listen(QHostAddress::LocalHost));
        QByteArray received;
        connect(&server, &QTcpServer::newConnection, this, [&] {
            QTcpSocket* socket = server.nextPendingConnection();
            connect(socket, &QTcpSocket::readyRead, this, [&received, socket] {
                received += socket->readAll();
                socket->write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            });
        });
        Client connection({"127.0.0.1", server.serverPort(), Digest{}});
        QCOMPARE(ask(connection, request_with_secret()).error, ErrorKind::network);
        QVERIFY(!received.contains("secret"));
    }

    void labs_with_an_ipv6_address_alone_are_reached() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo, QHostAddress::LocalHostIPv6);
        if (!server.isListening()) QSKIP("this machine has no IPv6");
        Client connection(address_of(server, certificate.key_digest));
        QCOMPARE(ask(connection, request_with_secret()).status, 200);
        QCOMPARE(QString::fromStdString(server.requests[0].fields["host"]),
                 QString("[::1]:%1").arg(server.serverPort()));
    }

    void an_answer_that_breaks_off_is_a_failure() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, [](const FakeRequest&, const FakeHttps::Answer& answer) {
            FakeReply reply;
            reply.body = QByteArray(100'000, 'x');
            reply.cut_after = 50'000;
            answer(reply);
        });
        Client connection(address_of(server, certificate.key_digest));
        const Outcome outcome = ask(connection, request_with_secret());
        QCOMPARE(outcome.error, ErrorKind::network);
        QCOMPARE(outcome.body.size(), 50'000);
    }

    void a_large_body_is_streamed_in_pieces() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, certificate.key_digest));
        HttpRequest request;
        request.method = "PUT";
        request.streamed_bytes = 20 << 20;
        int pieces = 0;
        request.next_piece = [&](QByteArray& piece) {
            piece.append(1 << 20, static_cast<char>('a' + pieces++));
        };
        const Outcome outcome = ask(connection, std::move(request));
        QCOMPARE(pieces, 20);
        QCOMPARE(outcome.body.size(), 20 << 20);
        QCOMPARE(outcome.body[0], 'a');
        QCOMPARE(outcome.body.back(), 't');
    }

    void an_early_refusal_ends_an_upload() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        Client connection(address_of(server, certificate.key_digest));
        HttpRequest request;
        request.method = "PUT";
        request.streamed_bytes = uint64_t{1} << 30;
        server.cut_request_after = 3 << 20;
        server.cut_request = [](const FakeRequest&) {};
        request.next_piece = [&](QByteArray& piece) { piece.append(1 << 20, 'x'); };
        QCOMPARE(ask(connection, std::move(request)).error, ErrorKind::network);
    }

    void dropping_a_request_calls_nobody() {
        const Certificate certificate = make_certificate();
        FakeHttps server(certificate, echo);
        server.silent = true;
        Client connection(address_of(server, certificate.key_digest));
        bool called = false;
        HttpHandlers handlers;
        handlers.done = [&] { called = true; };
        handlers.failed = [&](const Error&) { called = true; };
        connection.send(request_with_secret(), std::move(handlers));
        QTRY_COMPARE(server.requests.size(), size_t{1});
        connection.abort();
        QVERIFY(!connection.busy());
        QTest::qWait(50);
        QVERIFY(!called);
    }
};

QTEST_GUILESS_MAIN(TestHttpConnection)
#include "test_http_connection.moc"
