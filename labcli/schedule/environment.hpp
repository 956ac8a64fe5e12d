// Environment: time and chance, from outside, so that a simulation can replay a lab's life from a seed.
#pragma once

#include <cstdint>
#include <functional>

namespace goblin::lab {

// Uniform in 0 … bound − 1. Secret: from the system's generator, except in simulations.
using Draw = std::function<uint64_t(uint64_t bound)>;

struct Environment {
    Draw draw;
    std::function<uint64_t()> now_ms;   // monotonic; every deadline is on it
    std::function<uint64_t()> wall_ms;  // since 1970; for people, and for the expiry of invitations
};

}  // namespace goblin::lab
