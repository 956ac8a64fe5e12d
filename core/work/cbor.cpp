// Reads and writes the subset of CBOR that messages use.
#include "core/work/cbor.hpp"

#include <cassert>

#include "core/error.hpp"
#include "core/work/limits.hpp"

namespace goblin {

namespace {

constexpr uint8_t simple_false = 0xf4;
constexpr uint8_t simple_true = 0xf5;
constexpr uint8_t simple_null = 0xf6;

}  // namespace

void CborWriter::head(uint8_t major, uint64_t value) {
    const auto first = static_cast<uint8_t>(major << 5);
    if (value < 24) {
        buffer_.push_back(static_cast<uint8_t>(first | value));
        return;
    }
    const int width_log2 = value > 0xffffffff ? 3 : value > 0xffff ? 2 : value > 0xff ? 1 : 0;
    buffer_.push_back(static_cast<uint8_t>(first | (24 + width_log2)));
    for (int shift = (8 << width_log2) - 8; shift >= 0; shift -= 8)
        buffer_.push_back(static_cast<uint8_t>(value >> shift));
}

void CborWriter::bytes(std::span<const uint8_t> value) {
    head(2, value.size());
    buffer_.insert(buffer_.end(), value.begin(), value.end());
}

void CborWriter::text(std::string_view value) {
    head(3, value.size());
    buffer_.insert(buffer_.end(), value.begin(), value.end());
}

uint8_t CborReader::next(std::string_view expected) {
    if (offset_ >= input_.size())
        throw Error(ErrorKind::input, "message: expected {} at byte {}, found the end", expected, offset_);
    return input_[offset_++];
}

std::span<const uint8_t> CborReader::take(uint64_t size) {
    if (size > input_.size() - offset_)
        throw Error(ErrorKind::input, "message: expected {} more bytes at byte {}, found {}", size, offset_,
                    input_.size() - offset_);
    const auto taken = input_.subspan(offset_, size);
    offset_ += size;
    return taken;
}

uint64_t CborReader::head(uint8_t major, std::string_view expected) {
    const size_t start = offset_;
    const uint8_t first = next(expected);
    if (first >> 5 != major)
        throw Error(ErrorKind::input, "message: expected {} at byte {}, found an item of kind {}", expected,
                    start, first >> 5);
    const uint8_t info = first & 31;
    if (info < 24) return info;
    if (info > 27)
        throw Error(ErrorKind::input, "message: expected a definite length at byte {}, found {:#x}", start,
                    first);
    const size_t width = size_t{1} << (info - 24);
    uint64_t value = 0;
    for (const uint8_t byte : take(width)) value = value << 8 | byte;
    const uint64_t smallest = width == 1 ? 24 : uint64_t{1} << (4 * width);
    if (value < smallest)
        throw Error(ErrorKind::input, "message: expected the shortest form of {} at byte {}, found {} bytes",
                    value, start, width);
    return value;
}

uint64_t CborReader::integer() {
    return head(0, "an integer");
}

std::span<const uint8_t> CborReader::bytes(uint64_t limit) {
    const size_t start = offset_;
    const uint64_t size = head(2, "bytes");
    if (size > limit)
        throw Error(ErrorKind::input, "message: expected at most {} bytes at byte {}, found {}", limit, start,
                    size);
    return take(size);
}

std::string_view CborReader::text(uint64_t limit) {
    const size_t start = offset_;
    const uint64_t size = head(3, "text");
    if (size > limit)
        throw Error(ErrorKind::input, "message: expected text of at most {} bytes at byte {}, found {}",
                    limit, start, size);
    const auto raw = take(size);
    const std::string_view text(reinterpret_cast<const char*>(raw.data()), raw.size());
    if (!is_utf8(text))
        throw Error(ErrorKind::input, "message: expected UTF-8 at byte {}, found other bytes", start);
    return text;
}

uint64_t CborReader::array(uint64_t limit) {
    const size_t start = offset_;
    const uint64_t length = head(4, "a list");
    if (length > limit)
        throw Error(ErrorKind::input, "message: expected a list of at most {} at byte {}, found {}", limit,
                    start, length);
    return length;
}

uint64_t CborReader::map(uint64_t limit) {
    const size_t start = offset_;
    const uint64_t length = head(5, "a map");
    if (length > limit)
        throw Error(ErrorKind::input, "message: expected a map of at most {} at byte {}, found {}", limit,
                    start, length);
    return length;
}

bool CborReader::boolean() {
    const size_t start = offset_;
    const uint8_t value = next("true or false");
    if (value != simple_false && value != simple_true)
        throw Error(ErrorKind::input, "message: expected true or false at byte {}, found {:#x}", start,
                    value);
    return value == simple_true;
}

bool CborReader::null() {
    if (offset_ >= input_.size() || input_[offset_] != simple_null) return false;
    ++offset_;
    return true;
}

void CborReader::enter() {
    if (++depth_ > limits::cbor_depth)
        throw Error(ErrorKind::input, "message: expected at most {} levels, found more at byte {}",
                    limits::cbor_depth, offset_);
}

void CborReader::leave() {
    assert(depth_ > 0);
    --depth_;
}

void CborReader::finish() const {
    if (offset_ != input_.size())
        throw Error(ErrorKind::input, "message: expected the end at byte {}, found {} more bytes", offset_,
                    input_.size() - offset_);
}

bool is_utf8(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    for (size_t i = 0; i < text.size();) {
        const uint8_t first = byte(i);
        if (first < 0x80) {
            ++i;
            continue;
        }
        const size_t length = first >= 0xf0 && first < 0xf5   ? 4
                              : first >= 0xe0 && first < 0xf0 ? 3
                              : first >= 0xc2 && first < 0xe0 ? 2
                                                              : 0;
        if (length == 0 || i + length > text.size()) return false;
        for (size_t k = 1; k < length; ++k)
            if (byte(i + k) >> 6 != 2) return false;
        const uint8_t second = byte(i + 1);
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return false;
        i += length;
    }
    return true;
}

}  // namespace goblin
