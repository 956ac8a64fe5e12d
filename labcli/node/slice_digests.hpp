// SliceDigests: the digests of slices that tasks name their inputs by, computed once while a job needs them.
#pragma once

#include <mutex>
#include <unordered_map>

#include "labcli/jobs/plan.hpp"
#include "labcli/schedule/records.hpp"

namespace goblin::lab {

class SliceDigests {
  public:
    // Reads and hashes the slice unless that was done before. Safe from several threads. Throws what reading
    // throws.
    Digest digest(const Plan& plan, JobId job, SliceNumber slice);
    void forget(JobId job);

  private:
    // Bounded: a job with more slices than this has its oldest guesses computed again.
    static constexpr size_t most_per_job = 65'536;
    std::mutex mutex_;
    std::unordered_map<JobId, std::unordered_map<SliceNumber, Digest>> known_;
};

}  // namespace goblin::lab
