// Reading HTTP answers, whole and in pieces, good and bad.
#include <QtTest>

#include "app/worker/http_message.hpp"
#include "core/error.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;
using worker::HttpField;
using worker::ResponseHead;
using worker::ResponseReader;

namespace {

struct Answer {
    ResponseHead head;
    std::string body;
    bool complete = false;
    size_t taken = 0;
};

// Feeds the text in pieces of that many bytes.
Answer read(const std::string& text, size_t piece_bytes = 1'000'000, bool without_body = false) {
    Answer answer;
    ResponseReader reader(without_body, {[&](const ResponseHead& head) { answer.head = head; },
                                         [&](std::span<const uint8_t> piece) {
                                             answer.body.append(reinterpret_cast<const char*>(piece.data()),
                                                                piece.size());
                                         }});
    for (size_t offset = 0; offset < text.size() && !reader.complete(); offset += piece_bytes) {
        const std::string piece = text.substr(offset, piece_bytes);
        answer.taken += reader.add({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
    }
    answer.complete = reader.complete();
    return answer;
}

const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Thing:  a b \r\n\r\nhello";
const std::string in_chunks =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nA;x=y\r\nlo, world!\r\n0\r\nTrailer: "
    "t\r\n\r\n";

}  // namespace

class TestHttpMessage : public QObject {
    Q_OBJECT
  private slots:
    void pieces_of_any_length_give_the_same_answer() {
        for (size_t piece = 1; piece <= in_chunks.size(); ++piece) {
            const Answer one = read(sized, piece);
            QVERIFY(one.complete);
            QCOMPARE(one.body, std::string("hello"));
            const Answer other = read(in_chunks, piece);
            QVERIFY(other.complete);
            QCOMPARE(other.body, std::string("hello, world!"));
        }
    }
    void fields_are_found_in_any_case_and_trimmed() {
        const Answer answer = read(sized);
        QCOMPARE(answer.head.field("x-thing"), std::string_view("a b"));
        QCOMPARE(answer.head.field("x-other"), std::string_view());
    }
    void an_interim_answer_is_passed_over() {
        QCOMPARE(read("HTTP/1.1 100 Continue\r\n\r\n" + sized).head.status, 200);
    }
    void interim_answers_without_end_are_refused() {
        std::string interim;
        for (int i = 0; i < 8; ++i) interim += "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        QCOMPARE(read(interim + sized).head.status, 200);
        VERIFY_REFUSED(read(interim + "HTTP/1.1 100 Continue\r\n\r\n" + sized), "at most 8 interim");
    }
    void an_answer_to_head_has_no_body() {
        const Answer answer = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 1000, true);
        QVERIFY(answer.complete);
        QCOMPARE(answer.body, std::string());
    }
    void no_content_needs_no_length() { QVERIFY(read("HTTP/1.1 204 No Content\r\n\r\n").complete); }
    void what_follows_is_left() { QCOMPARE(read(sized + "HTTP/1.1").taken, sized.size()); }
    void a_prefix_is_never_complete() {
        for (size_t size = 0; size < in_chunks.size(); ++size)
            QVERIFY(!read(in_chunks.substr(0, size)).complete);
    }
    void close_is_noticed() {
        QVERIFY(!read("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").head.keep_alive);
        QVERIFY(read(sized).head.keep_alive);
    }

    void what_is_no_http_is_refused_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("another protocol") << QByteArray("SSH-2.0-OpenSSH\r\n\r\n");
        QTest::newRow("HTTP/1.0") << QByteArray("HTTP/1.0 200 OK\r\n\r\n");
        QTest::newRow("no status") << QByteArray("HTTP/1.1 OK\r\n\r\n");
        QTest::newRow("status of four digits") << QByteArray("HTTP/1.1 2000\r\n\r\n");
        QTest::newRow("no length") << QByteArray("HTTP/1.1 200 OK\r\n\r\n");
        QTest::newRow("negative length") << QByteArray("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
        QTest::newRow("huge length") << QByteArray(
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
        QTest::newRow("two lengths") << QByteArray(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
        QTest::newRow("length and chunks")
            << QByteArray("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
        QTest::newRow("another encoding") << QByteArray("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n");
        QTest::newRow("bare line feed") << QByteArray("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
        QTest::newRow("line without colon") << QByteArray("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n");
        QTest::newRow("chunk without size")
            << QByteArray("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
        QTest::newRow("chunk without end")
            << QByteArray("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n");
    }
    void what_is_no_http_is_refused() {
        QFETCH(const QByteArray, text);
        QCOMPARE(kind_of_error_of([&] { read(text.toStdString()); }), ErrorKind::network);
        QCOMPARE(kind_of_error_of([&] { read(text.toStdString(), 1); }), ErrorKind::network);
    }
    void a_head_without_end_is_refused_at_its_limit() {
        VERIFY_REFUSED(read("HTTP/1.1 200 OK\r\n" + std::string(17'000, 'x')), "at most 16 KiB");
        VERIFY_REFUSED(
            read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + std::string(17'000, 'x')),
            "at most 16 KiB");
    }
    void a_request_names_the_host_first() {
        const HttpField field{"Accept", "nothing"};
        QCOMPARE(worker::request_head("GET", "/v1/lab", "[::1]:7410", std::span(&field, 1)),
                 std::string("GET /v1/lab HTTP/1.1\r\nHost: [::1]:7410\r\nAccept: nothing\r\n\r\n"));
    }
};

QTEST_APPLESS_MAIN(TestHttpMessage)
#include "test_http_message.moc"
