// PoolWorkshop: the scheduler's slow work on the lab node's pool, answers as turns on its thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "labcli/node/lab_thread.hpp"
#include "labcli/node/slice_digests.hpp"
#include "labcli/node/work_pool.hpp"
#include "labcli/schedule/workshop.hpp"
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
    void finish(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) override;
    void discard(std::shared_ptr<Plan> plan) override;

  private:
    PreparedTask prepare_one(const std::shared_ptr<const Plan>& plan, TaskNumber task);

    LabThread& lab_;
    SliceDigests digests_;
    // Checks are parallel inside, so one thread runs them; another reads, hashes and renames meanwhile.
    Verifier verifier_;
    WorkPool verifying_{1};
    WorkPool reading_{1};
};

}  // namespace goblin::lab
