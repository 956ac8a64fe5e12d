// A blocking HTTPS client on OpenSSL and plain sockets.
#include "tests/support/https_client.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>

#include "core/error.hpp"

namespace goblin::test {

namespace {

constexpr size_t buffer_bytes = size_t{256} << 10;

Error lost(std::string_view what) {
    return Error(ErrorKind::network, "expected the lab node to go on, found: {}", what);
}

sockaddr_storage socket_address(const std::string& text, uint16_t port) {
    sockaddr_storage storage{};
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    } else {
        throw Error(ErrorKind::usage, "expected an address, found '{}'", text);
    }
    return storage;
}

int open_socket(const HttpsClient::Settings& settings) {
    const sockaddr_storage to = socket_address(settings.address, settings.port);
    const int opened = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (opened < 0) throw lost(strerror(errno));
    const timeval timeout{settings.timeout_ms / 1000, settings.timeout_ms % 1000 * 1000};
    setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(opened, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    const int yes = 1;
    setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (settings.receive_buffer_bytes > 0)
        setsockopt(opened, SOL_SOCKET, SO_RCVBUF, &settings.receive_buffer_bytes,
                   sizeof settings.receive_buffer_bytes);
    bool ready = true;
    if (!settings.from.empty()) {
        const sockaddr_storage from = socket_address(settings.from, 0);
        ready = bind(opened, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0;
    }
    if (!ready || ::connect(opened, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        const int reason = errno;
        close(opened);
        throw lost(strerror(reason));
    }
    return opened;
}

struct FreeSsl {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(X509* certificate) const { X509_free(certificate); }
};

// One for all clients: making one takes longer than a handshake.
SSL_CTX* shared_context() {
    static const std::unique_ptr<SSL_CTX, FreeSsl> made = [] {
        std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets without MSG_NOSIGNAL
        std::unique_ptr<SSL_CTX, FreeSsl> context(SSL_CTX_new(TLS_client_method()));
        SSL_CTX_set_mode(context.get(), SSL_MODE_AUTO_RETRY);
        SSL_CTX_set_read_ahead(context.get(), 1);
        SSL_CTX_set_default_read_buffer_len(context.get(), buffer_bytes);
        return context;
    }();
    return made.get();
}

Digest key_of(SSL* ssl) {
    const std::unique_ptr<X509, FreeSsl> certificate(SSL_get1_peer_certificate(ssl));
    unsigned char* encoded = nullptr;
    const int size = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &encoded) : 0;
    if (size <= 0) throw Error(ErrorKind::denied, "expected a certificate, found none");
    const Digest digest = sha256({encoded, static_cast<size_t>(size)});
    OPENSSL_free(encoded);
    return digest;
}

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return result;
}

uint64_t number(std::string_view text, int base) {
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) throw lost("a malformed number");
    return value;
}

}  // namespace

std::string HttpReply::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
}

struct HttpsClient::Connection {
    int socket = -1;
    std::unique_ptr<SSL, FreeSsl> ssl;
    std::vector<uint8_t> buffer = std::vector<uint8_t>(buffer_bytes);
    size_t begin = 0;  // of what has arrived and isn't used
    size_t end = 0;

    ~Connection() {
        if (ssl) SSL_shutdown(ssl.get());
        ssl.reset();
        if (socket >= 0) close(socket);
    }
    std::string_view arrived() const {
        return {reinterpret_cast<const char*>(buffer.data()) + begin, end - begin};
    }
};

HttpsClient::HttpsClient(Settings settings) : settings_(std::move(settings)) {}
HttpsClient::~HttpsClient() = default;
HttpsClient::HttpsClient(HttpsClient&&) noexcept = default;

bool HttpsClient::connected() const {
    return connection_ != nullptr;
}

void HttpsClient::disconnect() {
    connection_.reset();
}

void HttpsClient::reset() {
    assert(connection_);
    const linger at_once{1, 0};
    setsockopt(connection_->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (connection_->ssl) SSL_set_quiet_shutdown(connection_->ssl.get(), 1);
    connection_.reset();
}

void HttpsClient::connect_without_tls() {
    connection_ = std::make_unique<Connection>();
    connection_->socket = open_socket(settings_);
}

void HttpsClient::connect() {
    connect_without_tls();
    connection_->ssl.reset(SSL_new(shared_context()));
    SSL* const ssl = connection_->ssl.get();
    if (settings_.tls_version != 0) {
        SSL_set_security_level(ssl, 0);  // also versions that OpenSSL itself would not speak
        SSL_set_min_proto_version(ssl, settings_.tls_version);
        SSL_set_max_proto_version(ssl, settings_.tls_version);
    }
    SSL_set_fd(ssl, connection_->socket);
    ERR_clear_error();
    const bool shaken = SSL_connect(ssl) == 1;
    if (!shaken || key_of(ssl) != settings_.lab_key) {
        connection_.reset();
        if (!shaken) throw lost("no TLS handshake");
        throw Error(ErrorKind::denied, "expected the lab's key, found another");
    }
}

std::string HttpsClient::tls_version() const {
    return SSL_get_version(connection_->ssl.get());
}

void HttpsClient::send(std::string_view bytes) {
    send(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

void HttpsClient::send(std::span<const uint8_t> bytes) {
    assert(connection_);
    ERR_clear_error();
    while (!bytes.empty()) {
        size_t taken = 0;
        if (connection_->ssl) {
            if (SSL_write_ex(connection_->ssl.get(), bytes.data(), bytes.size(), &taken) != 1)
                throw lost("the connection broke while sending");
        } else {
            const ssize_t size = ::send(connection_->socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (size < 0) throw lost(strerror(errno));
            taken = static_cast<size_t>(size);
        }
        bytes = bytes.subspan(taken);
    }
}

void HttpsClient::fill() {
    Connection& c = *connection_;
    if (c.begin == c.end) c.begin = c.end = 0;
    if (c.end == c.buffer.size()) {
        std::copy(c.buffer.begin() + static_cast<ptrdiff_t>(c.begin),
                  c.buffer.begin() + static_cast<ptrdiff_t>(c.end), c.buffer.begin());
        c.end -= c.begin;
        c.begin = 0;
        if (c.end == c.buffer.size()) throw lost("a line that is too long");
    }
    ERR_clear_error();
    size_t size = 0;
    if (c.ssl) {
        if (SSL_read_ex(c.ssl.get(), c.buffer.data() + c.end, c.buffer.size() - c.end, &size) != 1)
            throw lost("the connection broke while receiving");
    } else {
        const ssize_t taken = recv(c.socket, c.buffer.data() + c.end, c.buffer.size() - c.end, 0);
        if (taken <= 0) throw lost("the connection broke while receiving");
        size = static_cast<size_t>(taken);
    }
    c.end += size;
}

HttpReply HttpsClient::receive(bool is_head) {
    std::vector<uint8_t> body;
    HttpReply reply = receive(is_head, [&](int, std::span<const uint8_t> piece) {
        body.insert(body.end(), piece.begin(), piece.end());
    });
    reply.body = std::move(body);
    return reply;
}

HttpReply HttpsClient::receive(bool is_head, const TakeBody& take) {
    assert(connection_);
    Connection& c = *connection_;
    const auto line = [&]() {
        size_t found = 0;
        while ((found = c.arrived().find("\r\n")) == std::string_view::npos) fill();
        std::string text(c.arrived().substr(0, found));
        c.begin += found + 2;
        return text;
    };
    HttpReply reply;
    const auto body = [&](uint64_t left) {
        while (left > 0) {
            if (c.begin == c.end) fill();
            const size_t taken = std::min<uint64_t>(left, c.end - c.begin);
            take(reply.status, std::span(c.buffer).subspan(c.begin, taken));
            c.begin += taken;
            left -= taken;
        }
    };
    const std::string status = line();
    if (!status.starts_with("HTTP/1.1 ") || status.size() < 12) throw lost("something that is not HTTP");
    reply.status = static_cast<int>(number(std::string_view(status).substr(9, 3), 10));
    for (std::string text = line(); !text.empty(); text = line()) {
        const size_t colon = text.find(": ");
        if (colon == std::string::npos) throw lost("a malformed header");
        reply.headers[lower(std::string_view(text).substr(0, colon))] = text.substr(colon + 2);
    }
    if (is_head || reply.status == 204 || reply.status == 100) return reply;
    if (reply.header("transfer-encoding") == "chunked") {
        for (uint64_t size = number(line(), 16); size > 0; size = number(line(), 16)) {
            body(size);
            if (!line().empty()) throw lost("a malformed chunk");
        }
        line();
    } else {
        body(number(reply.header("content-length"), 10));
    }
    return reply;
}

HttpReply HttpsClient::request(std::string_view method, std::string_view target, std::string_view headers,
                               std::span<const uint8_t> body) {
    std::vector<uint8_t> received;
    HttpReply reply = request(method, target, headers, body, [&](int, std::span<const uint8_t> piece) {
        received.insert(received.end(), piece.begin(), piece.end());
    });
    reply.body = std::move(received);
    return reply;
}

HttpReply HttpsClient::request(std::string_view method, std::string_view target, std::string_view headers,
                               std::span<const uint8_t> body, const TakeBody& take) {
    constexpr size_t joined_bytes = size_t{64} << 10;
    const bool has_body = method == "POST" || method == "PUT";
    std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: lab\r\n{}", method, target, headers);
    head += has_body ? fmt::format("Content-Length: {}\r\n\r\n", body.size()) : "\r\n";
    const bool kept = connected();
    const auto exchange = [&] {
        if (!connected()) connect();
        if (body.size() <= joined_bytes) {
            std::string joined = head;
            joined.append(reinterpret_cast<const char*>(body.data()), body.size());
            send(joined);
        } else {
            send(head);
            send(body);
        }
        return receive(method == "HEAD", take);
    };
    HttpReply reply;
    try {
        reply = exchange();
    } catch (const Error&) {
        disconnect();
        if (!kept) throw;
        reply = exchange();
    }
    if (reply.header("connection") == "close") disconnect();
    return reply;
}

bool HttpsClient::closes_within(int ms) {
    assert(connection_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    std::array<char, 4096> dropped;
    while (std::chrono::steady_clock::now() < end) {
        pollfd ready{connection_->socket, POLLIN, 0};
        if (poll(&ready, 1, 10) <= 0) continue;
        if (recv(connection_->socket, dropped.data(), dropped.size(), 0) <= 0) return true;
    }
    return false;
}

}  // namespace goblin::test
