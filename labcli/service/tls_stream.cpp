// Moves bytes between OpenSSL and a socket, waiting by Asio.
#include "labcli/service/tls_stream.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

// Encrypted in one go before the socket is asked to take it.
constexpr size_t write_slice_bytes = size_t{256} << 10;
// A peer that makes us answer protocol messages without reading the answers gets no further than this.
constexpr size_t largest_unsent_bytes = size_t{1} << 20;
constexpr size_t record_bytes = 512;  // at most what TLS adds to a short piece
constexpr size_t read_ahead_bytes = size_t{64} << 10;
constexpr size_t resting_bytes = size_t{16} << 10;

void expect_done(bool done, std::string_view what) {
    if (!done)
        throw Error(ErrorKind::failed, "expected OpenSSL to {}, found it failing; check the system's OpenSSL",
                    what);
}

void use_certificate(SSL_CTX* context, const LabCertificate& certificate) {
    struct Free {
        void operator()(BIO* bio) const { BIO_free(bio); }
        void operator()(X509* parsed) const { X509_free(parsed); }
        void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    };
    const auto bio_of = [](const std::string& text) {
        return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    };
    const auto chain = bio_of(certificate.certificate_pem);
    const auto next = [&] {
        return std::unique_ptr<X509, Free>(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
    };
    const std::unique_ptr<X509, Free> newest = next();
    const std::unique_ptr<EVP_PKEY, Free> key(
        PEM_read_bio_PrivateKey(bio_of(certificate.key_pem).get(), nullptr, nullptr, nullptr));
    expect_done(newest && key && SSL_CTX_use_certificate(context, newest.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context, key.get()) == 1,
                "take the lab's key and certificate");
    // The older ones, for contributors that know the lab by an older key.
    while (const std::unique_ptr<X509, Free> older = next())
        expect_done(SSL_CTX_add1_chain_cert(context, older.get()) == 1, "take the lab's certificates");
    ERR_clear_error();  // the end of the text is one to OpenSSL
}

std::string last_tls_error() {
    const unsigned long code = ERR_peek_last_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    ERR_clear_error();
    return reason ? reason : "protocol violated";
}

}  // namespace

TlsContext::TlsContext(const LabCertificate& certificate) : context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX* const context = context_.get();
    expect_done(
        context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
            // AES-128 first: a third faster than AES-256, and secure.
            SSL_CTX_set_ciphersuites(
                context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384") == 1 &&
            SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
            SSL_CTX_set_num_tickets(context, 0) == 1,
        "set up TLS");
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_PRIORITIZE_CHACHA | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, read_ahead_bytes);
    use_certificate(context, certificate);
}

// A BIO that puts records into unsent_ instead of sending each one by itself.
const BIO_METHOD* TlsStream::collecting_bio() {
    static const BIO_METHOD* const made = [] {
        BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "collecting");
        expect_done(method != nullptr && BIO_meth_set_write(method, &TlsStream::collect) == 1 &&
                        BIO_meth_set_ctrl(method,
                                          [](BIO*, int command, long, void*) -> long {
                                              return command == BIO_CTRL_FLUSH ? 1 : 0;
                                          }) == 1,
                    "set up TLS");
        return method;
    }();
    return made;
}

int TlsStream::collect(BIO* bio, const char* data, int size) {
    auto& unsent = static_cast<TlsStream*>(BIO_get_data(bio))->unsent_;
    const auto length = static_cast<size_t>(size);
    if (unsent.size() + length > largest_unsent_bytes) return -1;
    try {
        const auto* bytes =
            reinterpret_cast<const uint8_t*>(data);  // the vector's own type: one copy, not a loop
        unsent.insert(unsent.end(), bytes, bytes + length);
    } catch (const std::bad_alloc&) {
        return -1;
    }
    return size;
}

TlsStream::TlsStream(asio::ip::tcp::socket socket, const TlsContext& context)
    : socket_(std::move(socket)), ssl_(SSL_new(context.get())) {
    BIO* const reading = BIO_new_socket(socket_.native_handle(), BIO_NOCLOSE);
    BIO* const writing = BIO_new(collecting_bio());
    if (!ssl_ || !reading || !writing) {
        BIO_free(reading);
        BIO_free(writing);
        throw Error(ErrorKind::memory, "expected memory for a TLS connection, the system has none left");
    }
    BIO_set_data(writing, this);
    BIO_set_init(writing, 1);
    SSL_set_bio(ssl_.get(), reading, writing);
    SSL_set_accept_state(ssl_.get());
    socket_.native_non_blocking(true);
}

asio::awaitable<void> TlsStream::wait(asio::ip::tcp::socket::wait_type what) {
    boost::system::error_code error;
    throw_if_ended();
    co_await socket_.async_wait(what, asio::redirect_error(asio::use_awaitable, error));
    throw_if_ended();
    if (error) throw ConnectionEnd{error.message()};
}

bool TlsStream::must_wait(int result) {
    if (result > 0) return false;
    const int system_error = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            return true;
        case SSL_ERROR_ZERO_RETURN:
            throw ConnectionEnd{"the peer said goodbye"};
        case SSL_ERROR_SYSCALL:
            throw ConnectionEnd{system_error == 0 ? "the peer hung up" : strerror(system_error)};
        default:
            throw ConnectionEnd{last_tls_error()};
    }
}

asio::awaitable<void> TlsStream::handshake() {
    const std::function<void(size_t)> nothing = [](size_t) {};
    while (true) {
        ERR_clear_error();
        errno = 0;
        bool wait = false;
        std::string failure;
        try {
            wait = must_wait(SSL_do_handshake(ssl_.get()));
        } catch (const ConnectionEnd& end) {
            failure = end.reason;
        }
        // Also when it failed: an alert says why.
        if (!unsent_.empty()) co_await flush(nothing);
        if (!failure.empty()) throw ConnectionEnd{failure};
        if (!wait) co_return;
        co_await wait_readable();
    }
}

size_t TlsStream::read_now(std::span<uint8_t> buffer) {
    size_t taken = 0;
    while (taken < buffer.size()) {
        ERR_clear_error();
        errno = 0;
        size_t size = 0;
        const int result = SSL_read_ex(ssl_.get(), buffer.data() + taken, buffer.size() - taken, &size);
        taken += size;
        // What was read before the end is worth more than the end, which the next call finds again.
        if (result <= 0 && taken > 0) break;
        if (must_wait(result)) break;
    }
    return taken;
}

asio::awaitable<void> TlsStream::wait_readable() {
    const std::function<void(size_t)> nothing = [](size_t) {};
    // Reading can leave something to send: the answer to a change of keys.
    if (!unsent_.empty()) co_await flush(nothing);
    co_await wait(asio::ip::tcp::socket::wait_read);
}

void TlsStream::when_readable(std::function<void()> ready) {
    socket_.async_wait(asio::ip::tcp::socket::wait_read,
                       [ready = std::move(ready)](boost::system::error_code) { ready(); });
}

asio::awaitable<void> TlsStream::flush(const std::function<void(size_t)>& on_sent) {
    size_t sent = 0;
    while (sent < unsent_.size()) {
        const ssize_t taken = ::send(socket_.native_handle(), unsent_.data() + sent, unsent_.size() - sent,
                                     MSG_NOSIGNAL | MSG_DONTWAIT);
        if (taken > 0) {
            sent += static_cast<size_t>(taken);
            on_sent(static_cast<size_t>(taken));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            co_await wait(asio::ip::tcp::socket::wait_write);
        } else if (errno != EINTR) {
            throw ConnectionEnd{strerror(errno)};
        }
    }
    unsent_.clear();
}

asio::awaitable<void> TlsStream::write(std::span<const uint8_t> bytes,
                                       const std::function<void(size_t)>& on_sent) {
    while (!bytes.empty()) {
        const auto slice = bytes.first(std::min(bytes.size(), write_slice_bytes));
        unsent_.reserve(slice.size() + slice.size() / 64 + record_bytes);
        ERR_clear_error();
        errno = 0;
        size_t taken = 0;
        const int result = SSL_write_ex(ssl_.get(), slice.data(), slice.size(), &taken);
        if (must_wait(result)) throw ConnectionEnd{"the peer asked for another handshake"};
        assert(taken == slice.size());
        co_await flush(on_sent);
        bytes = bytes.subspan(slice.size());
    }
}

asio::awaitable<void> TlsStream::drain() {
    std::array<uint8_t, 4096> discarded;
    while (true) {
        // Waits each time, however much is there: other connections have their turn and the deadline its
        // effect.
        co_await wait(asio::ip::tcp::socket::wait_read);
        const ssize_t taken =
            ::recv(socket_.native_handle(), discarded.data(), discarded.size(), MSG_DONTWAIT);
        const bool go_on =
            taken > 0 || (taken < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK));
        if (!go_on) co_return;
    }
}

asio::awaitable<void> TlsStream::finish() {
    const std::function<void(size_t)> nothing = [](size_t) {};
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    co_await flush(nothing);
    boost::system::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    co_await drain();
}

void TlsStream::end(std::string reason) {
    if (!end_reason_.empty()) return;
    end_reason_ = std::move(reason);
    boost::system::error_code ignored;
    socket_.cancel(ignored);
}

void TlsStream::rest() {
    if (unsent_.capacity() > resting_bytes) std::vector<uint8_t>().swap(unsent_);
}

}  // namespace goblin::lab
