// This computer: the devices it has for tasks, how fast each is, and why one can't be used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

struct ComputerSettings {
    unsigned cpu_threads = 1;
    uint64_t memory_bytes = 0;  // for tasks
};

struct FoundDevice {
    std::unique_ptr<Engine> engine;  // none when it can't be used
    DeviceOffer offer;
    unsigned threads = 0;
    std::string vector_target;
    std::vector<std::string> lacking;  // what it can't do, or why it can't be used; empty when all is well
};

// Starts each device, checks its known answers and measures it; takes less than a second or two. A device
// whose integers are wrong isn't used; one whose floats are wrong takes integer tasks.
std::vector<FoundDevice> find_devices(const ComputerSettings& settings);

// For `goblin-worker devices`.
std::string devices_text(const std::vector<FoundDevice>& devices);
std::string devices_json(const std::vector<FoundDevice>& devices);

// For `goblin-worker selftest`.
bool all_right(const std::vector<FoundDevice>& devices);
std::string self_test_text(const std::vector<FoundDevice>& devices);
std::string self_test_json(const std::vector<FoundDevice>& devices);

}  // namespace goblin::worker
