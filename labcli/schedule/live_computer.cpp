// Speed, quota and network of a computer.
#include "labcli/schedule/live_computer.hpp"

#include <algorithm>

#include <arpa/inet.h>

#include "core/work/hex.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t guessed_flops = uint64_t{10'000'000'000};
// A claim counts for no more than this until the lab has measured.
constexpr uint64_t largest_claimed_flops = uint64_t{2'000'000'000'000};
constexpr uint64_t shortest_evidence_ms = 1'000;
constexpr uint64_t first_pause_ms = 1'000;
constexpr uint64_t longest_pause_ms = 600'000;
// A computer that is there asks again when its exchange is answered, which takes exchange_wait_ms at most.
constexpr uint64_t connected_ms = limits::exchange_wait_ms + 15'000;
constexpr std::string_view stopping = "stopping";  // what goblin-worker says before it ends

}  // namespace

uint64_t LiveComputer::memory_bytes() const {
    uint64_t largest = 0;
    for (const DeviceOffer& device : devices) largest = std::max(largest, device.memory_bytes);
    return largest;
}

bool LiveComputer::takes_floats() const {
    return std::any_of(devices.begin(), devices.end(),
                       [](const DeviceOffer& device) { return device.takes_floats; });
}

uint64_t LiveComputer::speed_flops() const {
    if (record.speed_flops > 0) return record.speed_flops;
    uint64_t claimed = 0;
    for (const DeviceOffer& device : devices) claimed += std::min(device.speed_flops, largest_claimed_flops);
    return claimed > 0 ? std::min(claimed, largest_claimed_flops) : guessed_flops;
}

void LiveComputer::measure(uint64_t flops, uint64_t since_ms, uint64_t now_ms) {
    const uint64_t start_ms = std::max(since_ms, last_commit_ms);
    last_commit_ms = now_ms;
    if (flops == 0 || now_ms <= start_ms) return;
    const double sample = static_cast<double>(flops) * 1000 / static_cast<double>(now_ms - start_ms);
    // The way to the lab takes a part of this: what was done in no time says nothing about slowness.
    if (now_ms - start_ms < shortest_evidence_ms && sample < static_cast<double>(speed_flops())) return;
    const double blended =
        record.speed_flops == 0 ? sample : 0.7 * static_cast<double>(record.speed_flops) + 0.3 * sample;
    record.speed_flops = static_cast<uint64_t>(std::clamp(blended, 1.0, 1e18));
}

void LiveComputer::succeed() {
    ends_in_a_row = 0;
    quota = std::min<uint64_t>(quota * 2, limits::open_assignments);
}

void LiveComputer::err(uint64_t now_ms) {
    quota = std::max<uint64_t>(quota / 2, 1);
    hold_off(now_ms);
}

void LiveComputer::hold_off(uint64_t now_ms) {
    if (waits(now_ms)) return;
    const uint64_t doublings = std::min<uint64_t>(ends_in_a_row++, 10);
    no_tasks_before_ms = now_ms + std::min(first_pause_ms << doublings, longest_pause_ms);
}

bool LiveComputer::is_connected(uint64_t now_ms) const {
    return last_seen_ms != 0 && now_ms - last_seen_ms <= connected_ms && state != stopping;
}

std::string LiveComputer::state_text(uint64_t now_ms) const {
    if (last_seen_ms == 0) return "not heard since the lab node started";
    return is_connected(now_ms) || state == stopping ? state : "silent";
}

std::string network_of(const Peer& peer) {
    if (peer.loopback) return {};
    in_addr v4{};
    in6_addr v6{};
    if (inet_pton(AF_INET, peer.address.c_str(), &v4) == 1) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(&v4);
        return "4/" + to_hex({bytes, 3});
    }
    if (inet_pton(AF_INET6, peer.address.c_str(), &v6) == 1) return "6/" + to_hex({v6.s6_addr, 6});
    return peer.address;
}

}  // namespace goblin::lab
