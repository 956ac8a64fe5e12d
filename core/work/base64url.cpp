// Bytes as base64url text and back.
#include "core/work/base64url.hpp"

namespace goblin {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_base64url(std::span<const uint8_t> bytes) {
    std::string text;
    uint32_t bits = 0;
    int count = 0;
    for (const uint8_t byte : bytes) {
        bits = bits << 8 | byte;
        count += 8;
        for (; count >= 6; count -= 6) text += alphabet[bits >> (count - 6) & 63];
    }
    if (count > 0) text += alphabet[bits << (6 - count) & 63];
    return text;
}

std::optional<std::vector<uint8_t>> from_base64url(std::string_view text) {
    std::vector<uint8_t> bytes;
    uint32_t bits = 0;
    int count = 0;
    for (const char character : text) {
        const size_t value = alphabet.find(character);
        if (value == std::string_view::npos) return std::nullopt;
        bits = bits << 6 | static_cast<uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes.push_back(static_cast<uint8_t>(bits >> count));
        }
    }
    if (to_base64url(bytes) != text) return std::nullopt;  // stray bits or a stray character at the end
    return bytes;
}

}  // namespace goblin
