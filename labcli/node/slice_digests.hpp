// SliceDigests: the digests of slices that tasks name their inputs by, computed once while a job needs them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/work/digest.hpp"
#include "labcli/jobs/plan.hpp"

namespace goblin::lab {

class SliceDigests {
  public:
    // Reads and hashes the slice unless that was done before. Safe from several threads. Throws what reading
    // throws.
    Digest digest(const std::shared_ptr<const Plan>& plan, SliceNumber slice);

  private:
    // Bounded: a plan with more slices than this has its oldest guesses computed again.
    static constexpr size_t most_per_plan = 65'536;
    using Slices = std::unordered_map<SliceNumber, Digest>;

    Slices& slices_of(const std::shared_ptr<const Plan>& plan);

    std::mutex mutex_;
    std::map<std::weak_ptr<const Plan>, Slices, std::owner_less<>> known_;
};

}  // namespace goblin::lab
