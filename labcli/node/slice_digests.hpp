// SliceDigests: the digests of slices that tasks name their inputs by, computed once for all jobs that share
// an operand.
#pragma once

#include <map>
#include <mutex>

#include "core/work/digest.hpp"
#include "labcli/jobs/plan.hpp"

namespace goblin::lab {

class SliceDigests {
  public:
    // Reads and hashes the slice unless that was done before. Safe from several threads. Throws what reading
    // throws.
    Digest digest(const Plan& plan, SliceNumber slice);

  private:
    // Bounded: with more slices than this, all are forgotten and computed again when they are needed.
    static constexpr size_t most_slices = 65'536;

    std::mutex mutex_;
    std::map<SliceOrigin, Digest> known_;
};

}  // namespace goblin::lab
