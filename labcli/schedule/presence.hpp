// Presence: which volunteers and computers are there, as far as plans, policies and reasons need to know.
#pragma once

#include <cstdint>

#include "labcli/jobs/capacity.hpp"
#include "labcli/schedule/contributors.hpp"
#include "labcli/schedule/environment.hpp"

namespace goblin::lab {

// Counted a few times a second, of approved volunteers' computers heard in the last minutes.
class Presence {
  public:
    Presence(const Environment& environment, Contributors& contributors)
        : environment_(environment), contributors_(contributors) {}

    // Volunteers in different networks.
    uint64_t independent_volunteers() { return count().independent; }
    // Whether a machine of the lab's own is there.
    bool trusted_machine() { return count().trusted; }
    // For tasks, of one computer.
    uint64_t largest_memory_bytes() { return count().largest_memory_bytes; }
    // What a plan's tasks must fit.
    Capacity capacity();

  private:
    struct Counted {
        uint64_t at_ms = 0;  // 0: never
        uint64_t independent = 0;
        bool trusted = false;
        uint64_t largest_memory_bytes = 0;
    };
    const Counted& count();
    bool is_there(const LiveComputer& computer);

    const Environment& environment_;
    Contributors& contributors_;
    Counted counted_;
};

}  // namespace goblin::lab
