// PoolWorkshop: the scheduler's slow work on the lab node's pool, answers as turns on its thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "labcli/node/lab_thread.hpp"
#include "labcli/node/slice_digests.hpp"
#include "labcli/schedule/workshop.hpp"
#include "labcli/threads/work_pool.hpp"
#include "labcli/verify/verifier.hpp"

namespace goblin::lab {

class PoolWorkshop final : public Workshop {
  public:
    PoolWorkshop(LabThread& lab, unsigned threads);

    void prepare(std::shared_ptr<Plan> plan, JobId job, std::vector<TaskNumber> tasks,
                 std::function<void(PrepareAnswer)> done) override;
    void verify(std::vector<VerifyRequest> requests,
                std::function<void(std::vector<VerifyAnswer>)> done) override;
    void compute(std::shared_ptr<Plan> plan, JobId job, TaskNumber task,
                 std::function<void(VerifyAnswer)> done) override;
    void check_inputs(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) override;
    void finish(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) override;
    void discard(std::shared_ptr<Plan> plan) override;

  private:
    PreparedTask prepare_one(const std::shared_ptr<const Plan>& plan, TaskNumber task);

    void read(std::function<void(std::string)> done, std::function<void()> work);

    LabThread& lab_;
    SliceDigests digests_;
    // Checks are parallel inside, so one thread runs them; another reads, hashes and renames meanwhile.
    Verifier verifier_;
    // What waits is bounded where it is given out: a task has one check at a time, a job one preparation, one
    // check of its inputs and one end. More than this is none of their doing.
    static constexpr size_t most_waiting = size_t{1} << 20;
    WorkPool verifying_{1, most_waiting};
    WorkPool reading_{1, most_waiting};
    // File systems take seconds to free a large file: nobody else's job may wait for that.
    WorkPool removing_{1, most_waiting};
};

}  // namespace goblin::lab
