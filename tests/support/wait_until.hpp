// Waiting for a condition instead of a time: tests say how long they are patient, never how fast a machine
// is.
#pragma once

#include <chrono>
#include <thread>

namespace goblin::test {

// Whether the condition became true in time.
template <typename Condition>
bool wait_until(Condition&& condition, int patience_ms = 60'000, int interval_ms = 10) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(interval_ms));
    }
    return true;
}

}  // namespace goblin::test
