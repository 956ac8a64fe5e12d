// Bytes as base64url text without padding (RFC 4648, section 5) and back, for links.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace goblin {

std::string to_base64url(std::span<const uint8_t> bytes);
// Empty for anything but the one text that to_base64url() gives.
std::optional<std::vector<uint8_t>> from_base64url(std::string_view text);

}  // namespace goblin
