// Times two ways of doing the same work in turns.
#include "tests/bench/side_by_side.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace goblin::bench {

namespace {

// OpenBLAS's threads spin for about 30 ms after a call.
constexpr std::chrono::milliseconds pause{60};

double seconds_of(const std::function<void()>& work) {
    std::this_thread::sleep_for(pause);
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

SideBySide time_side_by_side(int pairs, const std::function<void()>& ours,
                             const std::function<void()>& peers) {
    ours();
    peers();
    std::vector<double> our_times, peer_times, ratios;
    for (int pair = 0; pair < pairs; ++pair) {
        our_times.push_back(seconds_of(ours));
        peer_times.push_back(seconds_of(peers));
        ratios.push_back(peer_times.back() / our_times.back());
    }
    return {.ours_s = median(our_times),
            .peers_s = median(peer_times),
            .ratio = median(ratios),
            .best_ours_s = *std::min_element(our_times.begin(), our_times.end())};
}

}  // namespace goblin::bench
