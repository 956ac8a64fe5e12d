// Arithmetic on sizes that cannot overflow: a hostile shape saturates instead of wrapping round.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace goblin {

inline uint64_t saturating_product(std::initializer_list<uint64_t> factors) {
    uint64_t product = 1;
    bool overflowed = false;
    for (const uint64_t factor : factors) {
        if (factor == 0) return 0;
        overflowed |= __builtin_mul_overflow(product, factor, &product);
    }
    return overflowed ? std::numeric_limits<uint64_t>::max() : product;
}

inline uint64_t saturating_sum(std::initializer_list<uint64_t> terms) {
    uint64_t sum = 0;
    for (const uint64_t term : terms)
        if (__builtin_add_overflow(sum, term, &sum)) return std::numeric_limits<uint64_t>::max();
    return sum;
}

}  // namespace goblin
