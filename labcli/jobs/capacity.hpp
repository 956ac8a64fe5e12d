// Capacity: what the contributors at hand can take, as far as a plan needs to know.
#pragma once

#include <cstdint>

namespace goblin::lab {

struct Capacity {
    uint64_t computers = 0;
    // Of the computer with the least; a plan's tasks must fit there.
    uint64_t smallest_memory_bytes = uint64_t{2} << 30;
    // Of the slowest and the sum of all, operations a second.
    uint64_t slowest_flops = uint64_t{20'000'000'000};
    uint64_t total_flops = uint64_t{20'000'000'000};
};

}  // namespace goblin::lab
