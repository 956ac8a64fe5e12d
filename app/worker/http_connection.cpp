// Speaks HTTP/1.1 over a QSslSocket and trusts the pinned key alone.
#include "app/worker/http_connection.hpp"

#ifdef __linux__
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#endif

#include <QSslConfiguration>
#include <cassert>

#include "core/work/key_chain.hpp"
#include "core/work/limits.hpp"

namespace goblin::worker {

namespace {

// Qt gives each of a name's addresses 30 s; the second must get its turn.
constexpr int connect_ms = 55'000;
constexpr qint64 read_buffer_bytes = qint64{4} << 20;
constexpr qint64 write_buffer_bytes = qint64{2} << 20;
constexpr size_t read_piece_bytes = size_t{256} << 10;

// A body that goes nowhere, or a lab that vanished, is noticed by the kernel too, between our own timers.
void notice_dead_peers(qintptr descriptor) {
#ifdef __linux__
    const int fd = static_cast<int>(descriptor);
    const auto set = [fd](int level, int name, int value) {
        setsockopt(fd, level, name, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 45'000);
#else
    (void)descriptor;
#endif
}

QSslConfiguration tls_settings() {
    QSslConfiguration settings = QSslConfiguration::defaultConfiguration();
    settings.setProtocol(QSsl::TlsV1_2OrLater);
    settings.setPeerVerifyMode(QSslSocket::VerifyPeer);
    settings.setCaCertificates({});  // no authority is trusted, only the key
    settings.setAllowedNextProtocols({QSslConfiguration::NextProtocolHttp1_1});
    // Every handshake shows a certificate: a session taken up again would bring back what was shown before.
    for (const QSsl::SslOption option :
         {QSsl::SslOptionDisableSessionTickets, QSsl::SslOptionDisableSessionSharing,
          QSsl::SslOptionDisableSessionPersistence})
        settings.setSslOption(option, true);
    return settings;
}

// What the peer proved by the handshake comes first, whatever else it sent.
std::vector<std::vector<uint8_t>> certificates_of(const QSslSocket& socket) {
    QList<QSslCertificate> chain = socket.peerCertificateChain();
    if (chain.isEmpty() || chain.first() != socket.peerCertificate()) chain = {socket.peerCertificate()};
    std::vector<std::vector<uint8_t>> certificates;
    for (const QSslCertificate& certificate :
         chain.first(std::min<qsizetype>(chain.size(), limits::lab_keys))) {
        const QByteArray der = certificate.toDer();
        certificates.emplace_back(der.begin(), der.end());
    }
    return certificates;
}

}  // namespace

HttpConnection::HttpConnection(LabAddress address, LabPin& pin, QObject* parent)
    : QObject(parent), address_(std::move(address)), pin_(pin), silence_(this) {
    silence_.setSingleShot(true);
    connect(&silence_, &QTimer::timeout, this, [this] {
        if (!exchange_) return;
        fail(Error(ErrorKind::network, "expected an answer from {} within {} s, found silence",
                   address_.text(), silence_.interval() / 1000));
    });
}

HttpConnection::~HttpConnection() {
    drop_socket();
}

void HttpConnection::drop_socket() {
    if (!socket_) return;
    socket_->disconnect(this);
    socket_->abort();
    socket_.release()->deleteLater();  // we may be inside one of its signals
    key_checked_ = used_ = false;
}

void HttpConnection::abort() {
    silence_.stop();
    exchange_.reset();
    drop_socket();
}

void HttpConnection::send(HttpRequest request, HttpHandlers handlers) {
    assert(!busy());
    exchange_ = std::make_unique<Exchange>();
    exchange_->request = std::move(request);
    exchange_->handlers = std::move(handlers);
    if (socket_ && socket_->state() != QAbstractSocket::ConnectedState) drop_socket();
    // Another connection may have met a newer key meanwhile.
    if (socket_ && key_checked_ && shown_keys_.front() != pin_.key()) drop_socket();
    if (socket_ && key_checked_) {
        exchange_->on_used_connection = used_;
        write_request();
    } else {
        connect_socket();
    }
}

void HttpConnection::connect_socket() {
    drop_socket();
    socket_ = std::make_unique<QSslSocket>();
    socket_->setSslConfiguration(tls_settings());
    socket_->setReadBufferSize(read_buffer_bytes);
    connect(socket_.get(), &QSslSocket::connected, this, [this] {
        socket_->setSocketOption(QAbstractSocket::LowDelayOption, 1);
        notice_dead_peers(socket_->socketDescriptor());
    });
    connect(socket_.get(), &QSslSocket::sslErrors, this, &HttpConnection::check_certificate);
    connect(socket_.get(), &QSslSocket::encrypted, this, &HttpConnection::encrypted);
    connect(socket_.get(), &QSslSocket::readyRead, this, &HttpConnection::read_response);
    connect(socket_.get(), &QSslSocket::encryptedBytesWritten, this, [this] {
        if (exchange_) silence_.start();
        write_body();
    });
    connect(socket_.get(), &QSslSocket::errorOccurred, this, &HttpConnection::disconnected);
    connect(socket_.get(), &QSslSocket::disconnected, this, &HttpConnection::disconnected);
    silence_.start(connect_ms);
    socket_->connectToHostEncrypted(QString::fromStdString(address_.host), address_.port);
}

void HttpConnection::check_certificate(const QList<QSslError>& errors) {
    shown_keys_ = followed_keys(certificates_of(*socket_));
    try {
        pin_.expect(shown_keys_, address_.text());
    } catch (const Error& error) {
        return fail(error);
    }
    // The key is right. What is said against the certificates otherwise (their dates, their names, who signed
    // them) doesn't matter.
    const QList<QSslCertificate> chain = socket_->peerCertificateChain();
    QList<QSslError> forgiven;
    for (const QSslError& error : errors)
        if (error.certificate().isNull() || chain.contains(error.certificate())) forgiven.append(error);
    if (!errors.isEmpty()) socket_->ignoreSslErrors(forgiven);
}

void HttpConnection::encrypted() {
    // Also without any error: an authority's certificate for another key is refused just the same.
    check_certificate({});
    if (!exchange_) return;
    key_checked_ = true;
    write_request();
}

void HttpConnection::write_request() {
    assert(key_checked_);
    Exchange& exchange = *exchange_;
    used_ = true;
    const bool without_body = exchange.request.method == "HEAD";
    exchange.reader = std::make_unique<ResponseReader>(
        without_body, ResponseReader::Sink{[this](const ResponseHead& head) {
                                               if (exchange_->handlers.head) exchange_->handlers.head(head);
                                           },
                                           [this](std::span<const uint8_t> piece) {
                                               if (exchange_->handlers.body) exchange_->handlers.body(piece);
                                           }});
    std::vector<HttpField> fields = exchange.request.fields;
    const uint64_t body_bytes = exchange.request.next_piece
                                    ? exchange.request.streamed_bytes
                                    : static_cast<uint64_t>(exchange.request.body.size());
    if (body_bytes > 0 || exchange.request.method == "POST" || exchange.request.method == "PUT")
        fields.push_back({"Content-Length", std::to_string(body_bytes)});
    const std::string head =
        request_head(exchange.request.method, exchange.request.target, address_.text(), fields);
    silence_.start(static_cast<int>(exchange.request.silence_ms));
    socket_->write(head.data(), static_cast<qint64>(head.size()));
    if (exchange.request.next_piece) {
        write_body();
    } else {
        if (!exchange.request.body.isEmpty()) socket_->write(exchange.request.body);
        exchange.sent = true;
    }
}

void HttpConnection::write_body() {
    while (exchange_ && exchange_->reader && !exchange_->sent && exchange_->request.next_piece &&
           socket_->bytesToWrite() + socket_->encryptedBytesToWrite() < write_buffer_bytes) {
        Exchange& exchange = *exchange_;
        exchange.sent = exchange.streamed_bytes == exchange.request.streamed_bytes;
        if (exchange.sent) return;
        QByteArray piece;
        try {
            exchange.request.next_piece(piece);
        } catch (const Error& error) {
            return fail(error);
        }
        exchange.streamed_bytes += static_cast<uint64_t>(piece.size());
        assert(!piece.isEmpty() && exchange.streamed_bytes <= exchange.request.streamed_bytes);
        socket_->write(piece);
    }
}

void HttpConnection::read_response() {
    buffer_.resize(read_piece_bytes);
    while (exchange_ && exchange_->reader && socket_ && socket_->bytesAvailable() > 0) {
        const qint64 size =
            socket_->read(reinterpret_cast<char*>(buffer_.data()), static_cast<qint64>(buffer_.size()));
        if (size <= 0) return;
        silence_.start();
        try {
            const auto piece = std::span<const uint8_t>(buffer_).first(static_cast<size_t>(size));
            const size_t taken = exchange_->reader->add(piece);
            if (taken < piece.size())
                throw Error(ErrorKind::network, "expected the end of the answer from {}, found more",
                            address_.text());
        } catch (const Error& error) {
            return fail(error);
        }
        if (exchange_->reader->complete()) return finish();
    }
    if (socket_ && !exchange_ && socket_->bytesAvailable() > 0) drop_socket();  // an answer nobody asked for
}

void HttpConnection::finish() {
    silence_.stop();
    const std::unique_ptr<Exchange> finished = std::move(exchange_);
    // An answer before the whole request was written refuses it; the rest of the body stays unsaid.
    if (!finished->sent || !finished->reader->keep_alive()) drop_socket();
    finished->handlers.done();
}

void HttpConnection::fail(const Error& error) {
    silence_.stop();
    const std::unique_ptr<Exchange> failed = std::move(exchange_);
    drop_socket();
    if (failed) failed->handlers.failed(error);
}

bool HttpConnection::restart_on_fresh_connection() {
    const bool may = exchange_->on_used_connection && !exchange_->restarted &&
                     !exchange_->request.next_piece && exchange_->reader && !exchange_->reader->began();
    if (!may) return false;
    exchange_->restarted = true;
    exchange_->sent = false;
    exchange_->streamed_bytes = 0;
    exchange_->reader.reset();
    connect_socket();
    return true;
}

void HttpConnection::disconnected() {
    if (!socket_) return;
    if (!exchange_) return drop_socket();
    read_response();
    if (!exchange_ || !socket_) return;
    if (restart_on_fresh_connection()) return;
    fail(Error(ErrorKind::network, "expected an answer from {}, found: {}", address_.text(),
               socket_->errorString().toStdString()));
}

}  // namespace goblin::worker
