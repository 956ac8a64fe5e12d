// HTTP/1.1 on a TLS connection: request heads, bodies and replies, each with its limits of size and time.
//
// Everything runs on the connection's I/O thread. A refusal is thrown as Refused, a lost peer as
// ConnectionEnd.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labcli/service/admission.hpp"
#include "labcli/service/io_thread.hpp"
#include "labcli/service/pending.hpp"
#include "labcli/service/request_head.hpp"
#include "labcli/service/service_limits.hpp"
#include "labcli/service/tls_stream.hpp"

namespace goblin::lab {

struct Reply {
    int status = 200;
    const char* content_type = "application/cbor";
    std::vector<uint8_t> body;
    std::string more_headers;  // whole lines
};
Reply reply_of(const Refusal& refusal);

// A body and the memory it was allowed to take.
struct Body {
    std::vector<uint8_t> bytes;
    std::optional<Admission::Share> share;
};

class HttpStream final : public Watched, public std::enable_shared_from_this<HttpStream> {
  public:
    HttpStream(IoThread& thread, asio::ip::tcp::socket socket, const TlsContext& context,
               Admission& admission, const ServiceLimits& limits, Peer peer);
    ~HttpStream() override;

    const Peer& peer() const { return peer_; }
    asio::awaitable<void> handshake();
    // Nothing when the connection is to be closed between two requests.
    asio::awaitable<std::optional<RequestHead>> read_head();
    // The whole body, at most `limit` bytes. Memory grows as bytes arrive.
    asio::awaitable<Body> read_body(uint64_t limit);
    uint64_t body_left() const { return body_left_; }
    // The next bytes of the body, as many as have arrived and `buffer` takes; at least one.
    asio::awaitable<size_t> read_piece(std::span<uint8_t> buffer);

    asio::awaitable<void> reply(Reply reply);
    // A body of unknown length: the head, any number of pieces, the end. A piece is framed by its maker: see
    // chunk_head_bytes.
    asio::awaitable<void> begin_chunks(const char* content_type);
    asio::awaitable<void> write_framed_chunk(std::span<const uint8_t> framed);
    asio::awaitable<void> end_chunks();

    // Waits for a value of another thread. While the lab thinks, a peer that hangs up is noticed.
    template <typename Value>
    asio::awaitable<Value> answer(Pending<Value>& pending, bool watch_peer);
    template <typename Value>
    Pending<Value> pending() {
        return Pending<Value>(wake_, thread_.mailbox());
    }

    bool keeps_alive() const { return keep_alive_ && !winding_down_; }
    void close_after_reply() { keep_alive_ = false; }
    // Closes so that the peer can still read the last reply.
    asio::awaitable<void> finish();

    void look(Clock::time_point now) override;
    void wind_down() override;
    void end_now() override;
    std::optional<Clock::time_point> idle_since() const override { return idle_since_; }

  private:
    asio::awaitable<void> wait_for_value(bool watch_peer);
    asio::awaitable<void> say_continue();
    asio::awaitable<void> send(std::span<const uint8_t> bytes);
    // Moves what has arrived into input_, up to a head's limit; false when nothing was there.
    bool fill_input();
    void watch();
    void set_deadline(uint64_t ms, const char* reason);
    void begin_body();
    void wait_for_body();
    void set_body_deadline();

    IoThread& thread_;
    TlsStream tls_;
    Admission& admission_;
    const ServiceLimits& limits_;
    Peer peer_;
    Wake wake_;
    std::function<void(size_t)> on_sent_;
    std::vector<uint8_t> input_;  // arrived and not yet used, at most a head's limit
    uint64_t body_left_ = 0;
    uint64_t body_moved_ = 0;        // bytes of the body at hand, in either direction
    Clock::duration body_waited_{};  // for the peer to move them
    Clock::time_point body_wait_began_{};
    bool continue_due_ = false;
    bool head_only_ = false;  // the request was a HEAD
    bool keep_alive_ = true;
    std::optional<Clock::time_point> idle_since_;
    bool reading_ = false;  // within a request
    bool winding_down_ = false;
    bool waiting_ = false;   // for the lab
    bool watching_ = false;  // a wait for the peer's bytes is under way
};

template <typename Value>
asio::awaitable<Value> HttpStream::answer(Pending<Value>& pending, bool watch_peer) {
    set_deadline(limits_.answer_ms, "the lab did not answer");
    while (!pending.ready()) co_await wait_for_value(watch_peer);
    co_return pending.take();
}

// Room before a chunk's bytes for its length, and behind them for its end.
inline constexpr size_t chunk_head_bytes = 10;
inline constexpr size_t chunk_tail_bytes = 2;
// Writes both around the `size` bytes between them.
void frame_chunk(std::span<uint8_t> framed);

}  // namespace goblin::lab
