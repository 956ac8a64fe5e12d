// One TLS connection on a non-blocking socket: OpenSSL's records, Asio's waiting, and a deadline on every
// wait.
//
// Asio's own ssl::stream makes a system call for each 16 KiB record. Here records collect until 256 KiB are
// ready or the caller has no more to say, and reads take what the socket has.
//
// Everything runs on the connection's I/O thread. Whatever ends the connection is thrown as ConnectionEnd.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "labcli/service/certificate.hpp"
#include "labcli/service/connection_end.hpp"

namespace goblin::lab {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// What all connections share: the lab's key and certificates, TLS 1.2 and 1.3, no resumption (each handshake
// shows the pinned key), so no early data either.
class TlsContext {
  public:
    explicit TlsContext(const LabCertificate& certificate);
    SSL_CTX* get() const { return context_.get(); }

  private:
    struct Free {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    };
    std::unique_ptr<SSL_CTX, Free> context_;
};

class TlsStream {
  public:
    TlsStream(asio::ip::tcp::socket socket, const TlsContext& context);
    TlsStream(const TlsStream&) = delete;
    TlsStream& operator=(const TlsStream&) = delete;

    asio::awaitable<void> handshake();
    // What has arrived, perhaps nothing.
    size_t read_now(std::span<uint8_t> buffer);
    // Returns when read_now() may find something.
    asio::awaitable<void> wait_readable();
    // Calls `ready` once when read_now() may find something or the connection is closed.
    void when_readable(std::function<void()> ready);
    // Returns when the socket has taken all of it. `on_sent` is called with the size of each piece that it
    // took.
    asio::awaitable<void> write(std::span<const uint8_t> bytes, const std::function<void(size_t)>& on_sent);
    // Says goodbye, then discards what still arrives until the peer closes too, so that it can read what was
    // written.
    asio::awaitable<void> finish();

    void set_deadline(Clock::time_point deadline, const char* reason) {
        deadline_ = deadline;
        deadline_reason_ = reason;
    }
    void end_if_overdue(Clock::time_point now) {
        if (now >= deadline_) end(deadline_reason_);
    }
    bool ended() const { return !end_reason_.empty(); }
    // Makes every present and later wait end with ConnectionEnd{reason}.
    void end(std::string reason);
    void throw_if_ended() const {
        if (!end_reason_.empty()) throw ConnectionEnd{end_reason_};
    }
    // Gives back the memory that only traffic needs.
    void rest();

  private:
    struct FreeSsl {
        void operator()(SSL* ssl) const { SSL_free(ssl); }
    };

    asio::awaitable<void> wait(asio::ip::tcp::socket::wait_type what);
    asio::awaitable<void> flush(const std::function<void(size_t)>& on_sent);
    asio::awaitable<void> drain();
    // True when the operation is to be tried again after the socket is readable; throws when it failed for
    // good.
    bool must_wait(int result);
    static const BIO_METHOD* collecting_bio();
    static int collect(BIO* bio, const char* data, int size);

    asio::ip::tcp::socket socket_;
    std::unique_ptr<SSL, FreeSsl> ssl_;
    std::vector<uint8_t> unsent_;  // TLS records
    Clock::time_point deadline_ = Clock::time_point::max();
    const char* deadline_reason_ = "";
    std::string end_reason_;
};

}  // namespace goblin::lab
