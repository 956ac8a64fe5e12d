// How many processors and how much memory this process may use: the machine's, its affinity and its control
// groups' (version 1 and 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace goblin::worker {

struct MachineLimits {
    unsigned processors = 1;
    std::string processors_by;  // what sets the limit, in plain words
    uint64_t memory_bytes = 0;
    std::string memory_by;
};

// `root` stands for "/": a test may build its own. `affinity` is the number of processors in the affinity
// mask.
MachineLimits read_machine_limits(const std::filesystem::path& root, unsigned affinity);
MachineLimits this_machine_limits();

// Lowest priority, no new privileges, files for the owner alone. Says in plain words what could not be had.
std::string become_humble();

}  // namespace goblin::worker
