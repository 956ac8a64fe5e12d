// CBOR (RFC 8949), the subset that messages use: definite lengths, shortest heads, no tags, no floats.
//
// A pull reader of our own instead of a library's tree: nothing is allocated that a length in the input asks
// for, byte strings are read in place, and no input can make it recurse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace goblin {

class CborWriter {
  public:
    void integer(uint64_t value) { head(0, value); }
    void bytes(std::span<const uint8_t> value);
    void text(std::string_view value);
    void array(uint64_t length) { head(4, length); }
    void map(uint64_t length) { head(5, length); }
    void boolean(bool value) { buffer_.push_back(value ? 0xf5 : 0xf4); }
    void null() { buffer_.push_back(0xf6); }

    std::vector<uint8_t> take() { return std::move(buffer_); }

  private:
    void head(uint8_t major, uint64_t value);

    std::vector<uint8_t> buffer_;
};

// Every read throws ErrorKind::input, naming the offset, when the next item isn't what is asked for.
class CborReader {
  public:
    explicit CborReader(std::span<const uint8_t> input) : input_(input) {}

    uint64_t integer();
    // Views into the input, of at most `limit` bytes. Text is checked to be UTF-8.
    std::span<const uint8_t> bytes(uint64_t limit);
    std::string_view text(uint64_t limit);
    // The number of items (of pairs) that follow, at most `limit`.
    uint64_t array(uint64_t limit);
    uint64_t map(uint64_t limit);
    bool boolean();
    // True, and past it, when the next item is null.
    bool null();
    // Call around the items of a container; refuses the 17th level.
    void enter();
    void leave();
    // Throws when something follows the last item.
    void finish() const;
    size_t offset() const { return offset_; }

  private:
    uint64_t head(uint8_t major, std::string_view expected);
    uint8_t next(std::string_view expected);
    std::span<const uint8_t> take(uint64_t size);

    std::span<const uint8_t> input_;
    size_t offset_ = 0;
    size_t depth_ = 0;
};

// True for well-formed UTF-8 without overlong forms and surrogates.
bool is_utf8(std::string_view text);

}  // namespace goblin
