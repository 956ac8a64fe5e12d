// Durations and sizes as people write them: 55m, 10s, 4GiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace goblin {

// "500ms", "10s", "55m", "8h", "7d". Throws ErrorKind::usage.
uint64_t parse_duration_ms(std::string_view text);
// "4GiB", "512MiB", "2GB", "1000". Throws ErrorKind::usage.
uint64_t parse_size_bytes(std::string_view text);
// "3.5 GiB", "12 bytes"
std::string size_text(uint64_t bytes);
// "1.5 s", "12 min"
std::string duration_text(uint64_t ms);

}  // namespace goblin
