// Counts who is there.
#include "labcli/schedule/presence.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace goblin::lab {

namespace {

constexpr uint64_t seen_recently_ms = 120'000;
constexpr uint64_t count_valid_ms = 200;
// A job isn't cut finer for computers with less than this, whatever they say of themselves or seem to be.
// Where there are no others, those with at least so much count.
constexpr uint64_t smallest_planned_memory_bytes = uint64_t{64} << 20;
constexpr uint64_t smallest_ever_planned_memory_bytes = uint64_t{32} << 20;
constexpr uint64_t slowest_planned_flops = uint64_t{1'000'000'000};

}  // namespace

bool Presence::is_there(const LiveComputer& computer) {
    return computer.last_seen_ms != 0 && environment_.now_ms() - computer.last_seen_ms <= seen_recently_ms &&
           contributors_.why_not(computer).empty();
}

const Presence::Counted& Presence::count() {
    const uint64_t now_ms = environment_.now_ms();
    if (counted_.at_ms != 0 && now_ms - counted_.at_ms < count_valid_ms) return counted_;
    std::set<VolunteerId> volunteers;
    std::set<std::string> networks;
    counted_ = {};
    counted_.at_ms = now_ms;
    for (const auto& [id, computer] : contributors_.computers()) {
        if (!is_there(computer)) continue;
        counted_.largest_memory_bytes = std::max(counted_.largest_memory_bytes, computer.memory_bytes());
        counted_.trusted |= contributors_.volunteer(computer.record.volunteer).trusted;
        if (!volunteers.insert(computer.record.volunteer).second) continue;
        counted_.independent += computer.network.empty() || networks.insert(computer.network).second;
    }
    return counted_;
}

Capacity Presence::capacity() {
    Capacity capacity;
    uint64_t largest_bytes = 0;
    for (const auto& [id, computer] : contributors_.computers())
        if (is_there(computer)) largest_bytes = std::max(largest_bytes, computer.memory_bytes());
    const uint64_t least_bytes =
        std::clamp(largest_bytes, smallest_ever_planned_memory_bytes, smallest_planned_memory_bytes);
    for (const auto& [id, computer] : contributors_.computers()) {
        const uint64_t memory_bytes = computer.memory_bytes();
        if (!is_there(computer) || memory_bytes < least_bytes) continue;
        const uint64_t flops = std::max(computer.speed_flops(), slowest_planned_flops);
        const bool first = capacity.computers++ == 0;
        capacity.smallest_memory_bytes =
            first ? memory_bytes : std::min(capacity.smallest_memory_bytes, memory_bytes);
        capacity.slowest_flops = first ? flops : std::min(capacity.slowest_flops, flops);
        capacity.total_flops = first ? flops : capacity.total_flops + flops;
    }
    return capacity;
}

}  // namespace goblin::lab
