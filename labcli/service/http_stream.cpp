// Reads requests and writes replies.
#include "labcli/service/http_stream.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cassert>
#include <string_view>

#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t free_body_bytes = uint64_t{64} << 10;  // of each body, not counted as shared memory
constexpr size_t joined_body_bytes = size_t{64}
                                     << 10;  // a reply up to here leaves in one piece with its head
constexpr size_t scratch_bytes = size_t{16} << 10;

struct Reason {
    int status;
    const char* text;
};
constexpr std::array reasons = {
    Reason{200, "OK"},
    Reason{202, "Accepted"},
    Reason{204, "No Content"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{411, "Length Required"},
    Reason{413, "Content Too Large"},
    Reason{417, "Expectation Failed"},
    Reason{426, "Upgrade Required"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{500, "Internal Server Error"},
    Reason{503, "Service Unavailable"},
    Reason{505, "HTTP Version Not Supported"},
};

const char* reason_of(int status) {
    const auto found =
        std::find_if(reasons.begin(), reasons.end(), [&](const Reason& r) { return r.status == status; });
    return found == reasons.end() ? "" : found->text;
}

std::string cut(std::string text, size_t limit) {
    while (text.size() > limit || !is_utf8(text)) text.pop_back();
    return text;
}

std::string head_text(int status, std::string_view headers, bool keep_alive) {
    return fmt::format("HTTP/1.1 {} {}\r\n{}{}\r\n", status, reason_of(status), headers,
                       keep_alive ? "" : "Connection: close\r\n");
}

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Reply reply_of(const Refusal& refusal) {
    ErrorReply error{cut(refusal.error.code, limits::name_characters),
                     cut(refusal.error.message, limits::text_bytes)};
    Reply reply;
    reply.status = refusal.status;
    reply.body = encode_message(error);
    if (refusal.retry_after_ms > 0)
        reply.more_headers = fmt::format("Retry-After: {}\r\n", (refusal.retry_after_ms + 999) / 1000);
    if (refusal.status == 401) reply.more_headers += "WWW-Authenticate: Goblin\r\n";
    return reply;
}

void frame_chunk(std::span<uint8_t> framed) {
    assert(framed.size() > chunk_head_bytes + chunk_tail_bytes);
    const size_t size = framed.size() - chunk_head_bytes - chunk_tail_bytes;
    const std::string head = fmt::format("{:08x}\r\n", size);
    assert(head.size() == chunk_head_bytes);
    std::copy(head.begin(), head.end(), framed.begin());
    framed[framed.size() - 2] = '\r';
    framed[framed.size() - 1] = '\n';
}

HttpStream::HttpStream(IoThread& thread, asio::ip::tcp::socket socket, const TlsContext& context,
                       Admission& admission, const ServiceLimits& limits, Peer peer)
    : thread_(thread),
      tls_(std::move(socket), context),
      admission_(admission),
      limits_(limits),
      peer_(std::move(peer)),
      wake_(thread.context()),
      on_sent_([this](size_t size) {
          body_moved_ += size;
          set_body_deadline();
      }) {
    thread_.add(*this);
}

HttpStream::~HttpStream() {
    thread_.remove(*this);
}

void HttpStream::look(Clock::time_point now) {
    tls_.end_if_overdue(now);
    if (tls_.ended()) wake_.notify();
}

void HttpStream::wind_down() {
    winding_down_ = true;
    if (idle_since_ || reading_) end_now();
}

void HttpStream::end_now() {
    idle_since_.reset();
    tls_.end("the service stops or has no room");
    wake_.notify();
}

void HttpStream::set_deadline(uint64_t ms, const char* reason) {
    tls_.set_deadline(Clock::now() + std::chrono::milliseconds(ms), reason);
}

void HttpStream::begin_body() {
    body_moved_ = 0;
    body_waited_ = {};
}

// Only time spent waiting for the peer counts against it, not the lab's own.
void HttpStream::wait_for_body() {
    body_wait_began_ = Clock::now();
    set_body_deadline();
}

void HttpStream::set_body_deadline() {
    const auto earned =
        std::chrono::milliseconds(limits_.rate_grace_ms + body_moved_ * 1000 / limits_.minimum_body_rate);
    const auto by_rate = body_wait_began_ + earned - body_waited_;
    const auto by_silence = Clock::now() + std::chrono::milliseconds(limits_.silence_ms);
    if (by_rate < by_silence)
        tls_.set_deadline(by_rate, "the body moved too slowly");
    else
        tls_.set_deadline(by_silence, "the body stopped moving");
}

asio::awaitable<void> HttpStream::handshake() {
    idle_since_ = Clock::now();
    set_deadline(limits_.handshake_ms, "the TLS handshake took too long");
    co_await tls_.handshake();
    idle_since_.reset();
}

bool HttpStream::fill_input() {
    thread_local std::array<uint8_t, scratch_bytes> scratch;
    assert(input_.size() < limits_.header_bytes);
    const size_t room = std::min<size_t>(scratch.size(), limits_.header_bytes - input_.size());
    const size_t taken = tls_.read_now(std::span(scratch).first(room));
    input_.insert(input_.end(), scratch.begin(), scratch.begin() + static_cast<ptrdiff_t>(taken));
    return taken > 0;
}

asio::awaitable<std::optional<RequestHead>> HttpStream::read_head() {
    static constexpr std::string_view end_mark = "\r\n\r\n";
    assert(body_left_ == 0);
    // Each request takes its turn, however many a peer sends at once.
    co_await asio::post(thread_.context(), asio::use_awaitable);
    if (winding_down_) co_return std::nullopt;
    if (input_.empty()) {
        std::vector<uint8_t>().swap(input_);
        tls_.rest();
        idle_since_ = Clock::now();
        set_deadline(limits_.idle_ms, "no request for a long time");
        while (!fill_input()) co_await tls_.wait_readable();
        idle_since_.reset();
    }
    set_deadline(limits_.header_ms, "the head of a request took too long");
    size_t searched = 0;
    while (true) {
        const std::string_view text(reinterpret_cast<const char*>(input_.data()), input_.size());
        const size_t found = text.find(end_mark, searched);
        if (found != std::string_view::npos) {
            const size_t size = found + end_mark.size();
            RequestHead head = parse_head(std::span(input_).first(size));
            input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(size));
            body_left_ = head.content_length;
            continue_due_ = head.expects_continue && body_left_ > 0;
            head_only_ = head.method == Method::head;
            keep_alive_ = head.keep_alive;
            begin_body();
            co_return std::optional<RequestHead>(std::move(head));
        }
        if (input_.size() >= limits_.header_bytes)
            throw refused(431, "message",
                          fmt::format("expected a request's head of at most {} bytes, found more",
                                      limits_.header_bytes));
        searched = text.size() - std::min(text.size(), end_mark.size() - 1);
        reading_ = true;
        while (!fill_input()) co_await tls_.wait_readable();
        reading_ = false;
    }
}

asio::awaitable<void> HttpStream::say_continue() {
    if (!continue_due_) co_return;
    continue_due_ = false;
    co_await tls_.write(bytes_of("HTTP/1.1 100 Continue\r\n\r\n"), on_sent_);
}

asio::awaitable<size_t> HttpStream::read_piece(std::span<uint8_t> buffer) {
    assert(body_left_ > 0 && !buffer.empty());
    if (winding_down_) throw ConnectionEnd{"the service stops"};
    wait_for_body();
    co_await say_continue();
    const auto room = buffer.first(std::min<uint64_t>(buffer.size(), body_left_));
    size_t taken = std::min(input_.size(), room.size());
    std::copy_n(input_.begin(), taken, room.begin());
    input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(taken));
    reading_ = true;
    while (taken == 0) {
        taken = tls_.read_now(room);
        if (taken == 0) co_await tls_.wait_readable();
    }
    reading_ = false;
    body_waited_ += Clock::now() - body_wait_began_;
    body_left_ -= taken;
    body_moved_ += taken;
    co_return taken;
}

asio::awaitable<Body> HttpStream::read_body(uint64_t limit) {
    if (body_left_ > limit)
        throw refused(413, "length",
                      fmt::format("expected a body of at most {} bytes, found {}", limit, body_left_));
    Body body;
    const uint64_t total = body_left_;
    uint64_t filled = 0;
    while (filled < total) {
        if (filled == body.bytes.size()) {
            const uint64_t larger = std::min(total, std::max(free_body_bytes, 2 * filled));
            if (larger > free_body_bytes) {
                const uint64_t more = larger - std::max(free_body_bytes, filled);
                if (!body.share) body.share = admission_.take(Resource::buffered_byte, peer_.address, 0);
                if (!admission_.grow(*body.share, more))
                    throw refused(503, "busy",
                                  "expected memory for the body, the lab node has none left; try again later",
                                  1000);
            }
            body.bytes.resize(larger);
        }
        const size_t taken = co_await read_piece(std::span(body.bytes).subspan(filled));
        filled += taken;
    }
    co_return body;
}

asio::awaitable<void> HttpStream::send(std::span<const uint8_t> bytes) {
    wait_for_body();
    co_await tls_.write(bytes, on_sent_);
    body_waited_ += Clock::now() - body_wait_began_;
}

asio::awaitable<void> HttpStream::reply(Reply reply) {
    if (body_left_ > 0 || winding_down_) keep_alive_ = false;
    std::string headers = std::move(reply.more_headers);
    if (reply.status != 204)
        headers +=
            fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.content_type, reply.body.size());
    const std::string head = head_text(reply.status, headers, keep_alive_);
    begin_body();
    if (head_only_) reply.body.clear();
    if (reply.body.size() <= joined_body_bytes) {
        std::vector<uint8_t> joined;
        joined.reserve(head.size() + reply.body.size());
        joined.insert(joined.end(), head.begin(), head.end());
        joined.insert(joined.end(), reply.body.begin(), reply.body.end());
        co_await send(joined);
    } else {
        const auto share = admission_.take_anyway(Resource::buffered_byte, peer_.address, reply.body.size());
        co_await send(bytes_of(head));
        co_await send(reply.body);
    }
}

asio::awaitable<void> HttpStream::begin_chunks(const char* content_type) {
    if (body_left_ > 0 || winding_down_) keep_alive_ = false;
    const std::string headers =
        fmt::format("Content-Type: {}\r\nTransfer-Encoding: chunked\r\n", content_type);
    const std::string head = head_text(200, headers, keep_alive_);
    begin_body();
    co_await send(bytes_of(head));
}

asio::awaitable<void> HttpStream::write_framed_chunk(std::span<const uint8_t> framed) {
    co_await send(framed);
}

asio::awaitable<void> HttpStream::end_chunks() {
    co_await send(bytes_of("0\r\n\r\n"));
}

void HttpStream::watch() {
    if (watching_) return;
    try {
        while (input_.size() < limits_.header_bytes && fill_input()) continue;
    } catch (const ConnectionEnd& end) {
        tls_.end(end.reason);
        wake_.notify();
        return;
    }
    if (input_.size() >= limits_.header_bytes) return;
    watching_ = true;
    tls_.when_readable([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        auto& stream = static_cast<HttpStream&>(*self);
        stream.watching_ = false;
        if (stream.waiting_) stream.watch();
    });
}

asio::awaitable<void> HttpStream::wait_for_value(bool watch_peer) {
    waiting_ = watch_peer;
    if (watch_peer) watch();
    co_await wake_.wait();
    waiting_ = false;
    tls_.throw_if_ended();
}

asio::awaitable<void> HttpStream::finish() {
    set_deadline(limits_.linger_ms, "the peer took too long to close");
    co_await tls_.finish();
}

}  // namespace goblin::lab
