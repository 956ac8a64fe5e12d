// Two forms of one test: a short one for every run, a long one for `./goblin test --all`. And seeds, printed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace goblin::test {

inline bool long_form() {
    return std::getenv("GOBLIN_LONG_FORM") != nullptr;
}

template <typename T>
T in_form(T short_form, T long_one) {
    return long_form() ? long_one : short_form;
}

// Of GOBLIN_SEED, else of the system; printed either way, so that a failure can be seen again.
inline uint64_t printed_seed() {
    const char* const chosen = std::getenv("GOBLIN_SEED");
    const uint64_t seed = chosen != nullptr ? std::stoull(chosen) : std::random_device{}();
    std::printf("seed %llu (GOBLIN_SEED=%llu runs it again)\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    return seed;
}

}  // namespace goblin::test
