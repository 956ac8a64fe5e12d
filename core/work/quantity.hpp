// Durations, sizes and counts as people write them: 55m, 10s, 4GiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace goblin {

// "500ms", "10s", "55m", "8h", "7d". Throws ErrorKind::usage.
uint64_t parse_duration_ms(std::string_view text);
// "4GiB", "512MiB", "2GB", "1000". Throws ErrorKind::usage.
uint64_t parse_size_bytes(std::string_view text);
// For people; files and --json have plain numbers.
// "3.5 GiB", "12 bytes"
std::string size_text(uint64_t bytes);
// "500 ms", "1.5 s", "2 min 5 s", "3 d 4 h"
std::string duration_text(uint64_t ms);
// "3.4 TFLOP"
std::string flops_text(double flops);
// "1 task", "12 tasks"
std::string count_text(uint64_t count, std::string_view one);

}  // namespace goblin
