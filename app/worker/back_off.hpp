// Back-off: how long to wait before trying again, longer with every failure and never in step with others.
#pragma once

#include <cstdint>
#include <functional>

namespace goblin::worker {

class BackOff {
  public:
    static constexpr uint64_t first_ms = 1'000;
    static constexpr uint64_t longest_ms = 300'000;

    // Draws from the system's generator.
    BackOff();
    // `random` gives 64 uniform bits.
    explicit BackOff(std::function<uint64_t()> random);

    // After a failure: from half the step to the whole of it; the step doubles each time. `asked_ms` is what
    // the peer asked for, obeyed as a minimum (and bounded by a day).
    uint64_t next_ms(uint64_t asked_ms = 0);
    void succeeded() { failures_ = 0; }
    uint64_t failures() const { return failures_; }

  private:
    std::function<uint64_t()> random_;
    uint64_t failures_ = 0;
};

}  // namespace goblin::worker
