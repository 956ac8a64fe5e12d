// Bytes as lower-case hexadecimal text and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace goblin {

std::string to_hex(std::span<const uint8_t> bytes);
// False when the text isn't exactly 2 · bytes.size() hexadecimal digits.
bool from_hex(std::string_view text, std::span<uint8_t> bytes);

}  // namespace goblin
