// Workshop: what the scheduler has done elsewhere because it takes time, reads disks or computes. Answers
// come back to the scheduler's own thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/work/task.hpp"
#include "labcli/jobs/plan.hpp"
#include "labcli/verify/claim.hpp"

namespace goblin::lab {

// A task ready to be handed out: its inputs are named by digest, small ones ride along.
struct PreparedTask {
    TaskNumber number = 0;
    std::shared_ptr<const TaskMessage> message;
    std::vector<TensorSpec> outputs;
    uint64_t flops = 0;
    uint64_t memory_bytes = 0;
    uint64_t transfer_bytes = 0;
    bool has_floats = false;
};

struct PrepareAnswer {
    std::vector<PreparedTask> tasks;
    std::string error;  // reading failed or an input changed: the job fails with this reason
};

class Workshop {
  public:
    virtual ~Workshop() = default;
    virtual void prepare(std::shared_ptr<Plan> plan, JobId job, std::vector<TaskNumber> tasks,
                         std::function<void(PrepareAnswer)> done) = 0;
    // Verifies each task; accepted ones are merged when the answer comes.
    virtual void verify(std::vector<VerifyRequest> requests,
                        std::function<void(std::vector<VerifyAnswer>)> done) = 0;
    // Computes a task here and merges it; the answer has no findings.
    virtual void compute(std::shared_ptr<Plan> plan, JobId job, TaskNumber task,
                         std::function<void(VerifyAnswer)> done) = 0;
    // Runs plan->check_inputs(); an empty text means they are as they were.
    virtual void check_inputs(std::shared_ptr<Plan> plan, std::function<void(std::string error)> done) = 0;
    // Runs plan->finish(); an empty text means it is done.
    virtual void finish(std::shared_ptr<Plan> plan, std::function<void(std::string error)> done) = 0;
    virtual void discard(std::shared_ptr<Plan> plan) = 0;
};

}  // namespace goblin::lab
