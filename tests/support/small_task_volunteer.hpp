// A volunteer for many small tasks: speaks the real protocol, computes honestly, wastes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/work/link.hpp"
#include "tests/support/simulated_contributor.hpp"

namespace goblin::test {

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
    SimulatedContributor lab_;
    ExchangeRequest next_;
    std::unordered_map<uint64_t, Open> open_;  // by the head of the assignment's id
};

// Volunteers on threads of their own, at work until they are told to stop.
class SmallTaskSwarm {
  public:
    SmallTaskSwarm(const InvitationLink& link, uint64_t volunteers, uint64_t results_per_exchange);
    ~SmallTaskSwarm();
    // Throws the first error that any of them met.
    void stop();

  private:
    void work(const InvitationLink& link, uint64_t number, uint64_t results_per_exchange);
    void keep(std::exception_ptr error);
    void end();

    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::exception_ptr error_;
    std::vector<std::thread> threads_;
};

}  // namespace goblin::test
