// Serves HTTP/1.1 over TLS for tests.
#include "tests/unit/worker/fake_https.hpp"

#include <QPointer>
#include <QSslConfiguration>
#include <algorithm>

namespace goblin::test {

namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

FakeRequest parse_head(const QByteArray& head) {
    FakeRequest request;
    const QList<QByteArray> lines = head.split('\n');
    const QList<QByteArray> first = lines.value(0).trimmed().split(' ');
    request.method = first.value(0).toStdString();
    request.target = first.value(1).toStdString();
    for (const QByteArray& line : lines.mid(1)) {
        const qsizetype colon = line.indexOf(':');
        if (colon > 0)
            request.fields[lower(line.left(colon).toStdString())] =
                line.mid(colon + 1).trimmed().toStdString();
    }
    return request;
}

}  // namespace

FakeHttps::FakeHttps(Certificate certificate, Handler handler, const QHostAddress& address)
    : certificate_(std::move(certificate)), handler_(std::move(handler)), address_(address) {
    listen(address_, 0);
    port_ = serverPort();
}

void FakeHttps::go_away() {
    close();
    break_connections();
}

void FakeHttps::come_back() {
    listen(address_, port_);
}

void FakeHttps::break_connections() {
    const auto open = std::exchange(open_, {});
    for (const auto& [socket, connection] : open) {
        socket->disconnect(this);
        socket->abort();
        socket->deleteLater();
    }
}

void FakeHttps::incomingConnection(qintptr descriptor) {
    auto* socket = new QSslSocket(this);
    if (!socket->setSocketDescriptor(descriptor)) return socket->deleteLater();
    ++connections;
    open_[socket];
    QSslConfiguration settings = socket->sslConfiguration();
    settings.setLocalCertificateChain(QList<QSslCertificate>{certificate_.certificate} + certificate_.older);
    settings.setPrivateKey(certificate_.key);
    settings.setPeerVerifyMode(QSslSocket::VerifyNone);
    socket->setSslConfiguration(settings);
    connect(socket, &QSslSocket::encrypted, this, [this] { ++handshakes; });
    connect(socket, &QSslSocket::readyRead, this, [this, socket] { read(socket); });
    connect(socket, &QSslSocket::disconnected, this, [this, socket] {
        open_.erase(socket);
        socket->deleteLater();
    });
    socket->startServerEncryption();
}

void FakeHttps::read(QSslSocket* socket) {
    const QByteArray piece = socket->readAll();
    plain_bytes += piece.size();
    open_[socket].input += piece;
    while (open_.contains(socket) && take_request(socket, open_[socket])) {
    }
}

bool FakeHttps::take_request(QSslSocket* socket, Connection& connection) {
    if (connection.answering) return false;
    if (!connection.head) {
        const qsizetype end = connection.input.indexOf("\r\n\r\n");
        if (end < 0) return false;
        connection.head = parse_head(connection.input.left(end));
        connection.input.remove(0, end + 4);
    }
    const auto& fields = connection.head->fields;
    const qsizetype length = fields.contains("content-length") ? std::stoll(fields.at("content-length")) : 0;
    if (connection.head->method == "PUT" && cut_request_after &&
        connection.input.size() >= *cut_request_after) {
        FakeRequest request = *connection.head;
        request.body = connection.input.left(*cut_request_after);
        cut_request_after.reset();
        cut_request(request);
        socket->abort();
        return false;
    }
    if (connection.input.size() < length) return false;
    FakeRequest request = *std::exchange(connection.head, std::nullopt);
    request.body = connection.input.left(length);
    connection.input.remove(0, length);
    requests.push_back(request);
    if (silent) return false;
    connection.answering = true;
    handler_(request, [this, guard = QPointer<QSslSocket>(socket),
                       head_only = request.method == "HEAD"](FakeReply reply) {
        if (!guard || !open_.contains(guard)) return;
        if (head_only) reply.body.clear();
        answer(guard, reply);
    });
    return true;
}

void FakeHttps::answer(QSslSocket* socket, const FakeReply& reply) {
    if (reply.cut) return socket->abort();
    QByteArray head = "HTTP/1.1 " + QByteArray::number(reply.status) + " said\r\n";
    for (const std::string& field : reply.fields) head += QByteArray::fromStdString(field) + "\r\n";
    if (reply.close) head += "Connection: close\r\n";
    head += reply.chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                          : "Content-Length: " + QByteArray::number(reply.body.size()) + "\r\n\r\n";
    QByteArray body = reply.body;
    if (reply.cut_after) body.truncate(*reply.cut_after);
    if (reply.chunked && !body.isEmpty()) body = QByteArray::number(body.size(), 16) + "\r\n" + body + "\r\n";
    if (reply.chunked && !reply.cut_after) body += "0\r\n\r\n";
    socket->write(head + body);
    open_[socket].answering = false;
    if (reply.cut_after || reply.close) {
        socket->flush();
        socket->disconnectFromHost();
        return;
    }
    if (open_.contains(socket)) read(socket);
}

}  // namespace goblin::test
