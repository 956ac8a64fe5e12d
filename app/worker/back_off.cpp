// Exponential back-off with jitter.
#include "app/worker/back_off.hpp"

#include <algorithm>

#include "core/work/identity.hpp"

namespace goblin::worker {

namespace {
constexpr uint64_t longest_asked_ms = 86'400'000;

uint64_t random_bits() {
    uint64_t bits = 0;
    for (const uint8_t byte : random_bytes<FixedBytes<8>>()) bits = bits << 8 | byte;
    return bits;
}
}  // namespace

BackOff::BackOff() : BackOff(random_bits) {}

BackOff::BackOff(std::function<uint64_t()> random) : random_(std::move(random)) {}

uint64_t BackOff::next_ms(uint64_t asked_ms) {
    const uint64_t doublings = std::min<uint64_t>(failures_, 20);
    const uint64_t step = std::min(first_ms << doublings, longest_ms);
    ++failures_;
    const uint64_t jittered = step / 2 + random_() % (step / 2 + 1);
    return std::max(jittered, std::min(asked_ms, longest_asked_ms));
}

}  // namespace goblin::worker
