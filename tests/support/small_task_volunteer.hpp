// A volunteer for benchmarks of small tasks: speaks the real protocol, computes honestly, wastes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "core/work/link.hpp"
#include "tests/support/simulated_contributor.hpp"

namespace goblin::bench {

class SmallTaskVolunteer {
  public:
    // Joins the lab under an identity of its own.
    SmallTaskVolunteer(const InvitationLink& link, uint64_t number, uint64_t results_per_exchange);

    // Takes tasks, computes them and sends what is asked for, until `stop`.
    void work(const std::atomic<bool>& stop);

  private:
    struct Open {
        FrameMessage output;
    };
    void take(ExchangeReply& reply);
    void compute(Grant& grant);

    uint64_t results_per_exchange_;
    test::SimulatedContributor lab_;
    ExchangeRequest next_;
    std::unordered_map<uint64_t, Open> open_;  // by the head of the assignment's id
};

}  // namespace goblin::bench
