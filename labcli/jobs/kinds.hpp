// The kinds of jobs: one row each, from which submissions and restarts find the plan.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "labcli/jobs/capacity.hpp"
#include "labcli/jobs/plan.hpp"

namespace goblin::lab {

struct JobKind {
    std::string_view name;
    // Checks a submission's arguments, looks at its inputs and fixes how it is split: the specification that
    // is stored and that open() takes. Throws ErrorKind::usage or ErrorKind::input.
    nlohmann::json (*plan)(const nlohmann::json& arguments, const Capacity& capacity);
    // The plan of a specification; when `fresh` its output is created, and noted in the specification, else
    // taken up where it was left.
    std::shared_ptr<Plan> (*open)(nlohmann::json& specification, bool fresh);
    // The same without touching any output: for `--dry-run`.
    PlanSummary (*summarize)(const nlohmann::json& specification);
    // Removes the unfinished output of a job that can't be taken up any more, because open() threw.
    void (*discard)(const nlohmann::json& specification);
};

// Throws ErrorKind::usage for a kind that doesn't exist.
const JobKind& job_kind(std::string_view name);

}  // namespace goblin::lab
