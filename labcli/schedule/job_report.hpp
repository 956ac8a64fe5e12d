// What is said about a job: its progress, who computed what, how it was verified and what that promises.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "labcli/schedule/contributors.hpp"
#include "labcli/schedule/job.hpp"

namespace goblin::lab {

// Of a job that runs or has just ended; kept with the record of an ended one.
nlohmann::json report_of(const Job& job, Contributors& contributors, uint64_t now_ms, bool is_computed);

}  // namespace goblin::lab
