// Job: one submission while the lab node runs it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "labcli/jobs/plan.hpp"
#include "labcli/records/records.hpp"
#include "labcli/schedule/job_queue.hpp"

namespace goblin::lab {

struct Job {
    JobRecord record;
    std::shared_ptr<Plan> plan;
    PlanSummary summary;
    JobQueue queue;

    bool preparing = false;
    bool finishing = false;
    bool checking_inputs = false;
    uint64_t inputs_checked_ms = 0;
    uint64_t started_ms = 0;  // monotonic, when it was submitted or taken up again
    uint64_t accepted_at_start = 0;
    bool has_floats = false;
    uint64_t starved_since_ms = 0;  // somebody wanted tasks and was eligible for none of those left; 0: no
    uint64_t short_of_volunteers_since_ms = 0;  // 0: not short
    uint64_t draws_looked_after_ms = 0;

    std::unordered_map<VolunteerId, uint64_t> agreed_results;

    Job(JobRecord stored, std::shared_ptr<Plan> opened, const std::vector<TaskNumber>& accepted,
        uint64_t now_ms)
        : record(std::move(stored)),
          plan(std::move(opened)),
          summary(plan->summary()),
          queue(plan->task_count(), accepted),
          started_ms(now_ms),
          accepted_at_start(accepted.size()),
          has_floats(summary.has_floats) {}

    // One that can't be opened any more.
    Job(JobRecord stored, PlanSummary known, const std::vector<TaskNumber>& accepted, uint64_t now_ms)
        : record(std::move(stored)),
          summary(std::move(known)),
          queue(summary.tasks, accepted),
          started_ms(now_ms),
          accepted_at_start(accepted.size()),
          has_floats(summary.has_floats) {}

    // One that is over.
    explicit Job(JobRecord stored) : record(std::move(stored)), queue(0, {}) {}

    // How many contributors compute each task.
    uint64_t replicas() const {
        const PolicyInfo* const policy = find_policy(record.choice.resolved);
        return policy != nullptr && policy->replicas == Replicas::chosen ? record.choice.replicas : 1;
    }
};

}  // namespace goblin::lab
