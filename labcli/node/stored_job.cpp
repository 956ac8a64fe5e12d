// Reads records of jobs back.
#include "labcli/node/stored_job.hpp"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.hpp"
#include "labcli/jobs/kinds.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

Error unreadable(const std::string& found) {
    return {ErrorKind::input,
            "expected a record of a job that this goblin-lab can read, found: {}; submit the job again",
            found};
}

void expect_known(const JobRecord& job) {
    for (const std::string_view name :
         {name_of(job.state), name_of(job.choice.policy), name_of(job.choice.resolved)})
        if (name == "unknown") throw Error(ErrorKind::input, "a state or a policy that it doesn't know");
    if (job.choice.replicas < 1 || job.choice.replicas > largest_replicas)
        throw Error(ErrorKind::input, "{} replicas of each task", job.choice.replicas);
}

// What is known of the tasks must be about tasks of this plan.
void expect_fits(const JobRecord& job, const JobBoard::Past& past, uint64_t tasks) {
    if (tasks != job.tasks || tasks > most_tasks)
        throw Error(ErrorKind::input, "{} tasks in a job of {}", job.tasks, tasks);
    std::unordered_set<TaskNumber> accepted;
    for (const TaskNumber task : past.accepted) {
        if (task >= tasks) throw Error(ErrorKind::input, "task {} in a job of {} tasks", task, tasks);
        accepted.insert(task);
    }
    for (const Assignment& assignment : past.open)
        if (assignment.task >= tasks || accepted.contains(assignment.task))
            throw Error(ErrorKind::input,
                        "an open assignment of task {}, which is accepted or none of its {}", assignment.task,
                        tasks);
}

}  // namespace

std::shared_ptr<Plan> open_stored(const JobRecord& job, const JobBoard::Past& past) {
    const JobKind* kind = nullptr;
    json specification;
    try {
        expect_known(job);
        kind = &job_kind(job.kind);
        specification = json::parse(job.specification);
        expect_fits(job, past, kind->summarize(specification).tasks);
    } catch (const std::exception& error) {
        throw unreadable(error.what());
    }
    try {
        return kind->open(specification, false);
    } catch (const json::exception& error) {
        throw unreadable(error.what());
    }
}

PlanSummary summary_of_stored(const JobRecord& job) {
    PlanSummary summary;
    try {
        summary = job_kind(job.kind).summarize(json::parse(job.specification));
    } catch (const std::exception&) {
        summary.tasks = job.tasks;
    }
    if (summary.tasks > most_tasks) summary.tasks = 0;  // no job has so many
    return summary;
}

void discard_stored(const JobRecord& job) {
    try {
        job_kind(job.kind).discard(json::parse(job.specification));
    } catch (const std::exception&) {
        // What couldn't be removed is named .partial-… beside the target; nothing depends on it.
    }
}

}  // namespace goblin::lab
