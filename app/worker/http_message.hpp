// HTTP/1.1 as far as this program speaks it: writes request heads, reads responses piece by piece within
// limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace goblin::worker {

struct HttpField {
    std::string name;
    std::string value;
};

struct ResponseHead {
    int status = 0;
    std::vector<HttpField> fields;
    std::optional<uint64_t> content_length;
    bool chunked = false;
    bool keep_alive = true;

    // The first field of that name, in any case; empty when there is none.
    std::string_view field(std::string_view name) const;
};

// The whole head, with the blank line. Names and values must be printable ASCII; Host comes first.
std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         std::span<const HttpField> fields);

// Reads one response from bytes as they arrive. Interim responses (1xx) are passed over.
class ResponseReader {
  public:
    struct Sink {
        std::function<void(const ResponseHead&)> head;
        std::function<void(std::span<const uint8_t>)> body;  // in pieces, chunk framing removed
    };
    // `without_body`: the answer to HEAD.
    ResponseReader(bool without_body, Sink sink) : without_body_(without_body), sink_(std::move(sink)) {}

    // Takes the next piece and returns how much of it belongs to this response. Throws ErrorKind::network for
    // what is not HTTP/1.1 or exceeds limits::header_bytes; passes on what the sink throws.
    size_t add(std::span<const uint8_t> piece);
    bool complete() const { return stage_ == Stage::complete; }
    bool began() const { return began_; }
    bool keep_alive() const { return head_.keep_alive; }

  private:
    enum class Stage { head, sized_body, chunk_size, chunk_body, chunk_end, trailer, complete };

    size_t take_line(std::span<const uint8_t> piece);
    void line_complete();
    void head_complete();
    void start_chunk();
    size_t take_body(std::span<const uint8_t> piece);

    bool without_body_;
    Sink sink_;
    Stage stage_ = Stage::head;
    bool began_ = false;
    ResponseHead head_;
    std::string line_;
    size_t head_size_ = 0;
    int interim_heads_ = 0;
    uint64_t remaining_ = 0;
};

}  // namespace goblin::worker
