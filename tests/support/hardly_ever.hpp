// A bound for tests that count random events.
#pragma once

#include <cmath>
#include <cstdint>

namespace goblin::test {

// The smallest count that n events of probability p each reach with probability below 1e-9, by Chernoff's
// bound: P(X ≥ k) ≤ exp(−n·D), D = q·ln(q/p) + (1 − q)·ln((1 − q)/(1 − p)), q = k/n > p.
inline uint64_t hardly_ever(uint64_t n, double p) {
    for (auto k = static_cast<uint64_t>(p * static_cast<double>(n)) + 1; k < n; ++k) {
        const double q = static_cast<double>(k) / static_cast<double>(n);
        const double divergence = q * std::log(q / p) + (1 - q) * std::log((1 - q) / (1 - p));
        if (static_cast<double>(n) * divergence > std::log(1e9)) return k;
    }
    return n;
}

}  // namespace goblin::test
