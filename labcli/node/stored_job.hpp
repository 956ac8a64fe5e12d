// A job's record from before a restart, read back. It comes from a file, so nothing in it is relied upon
// before it was looked at.
#pragma once

#include <memory>

#include "labcli/jobs/plan.hpp"
#include "labcli/schedule/job_board.hpp"

namespace goblin::lab {

// The plan of a job that isn't over. Throws, with what to do, when the record can't be read, doesn't fit what
// is known of the job's tasks, or its files are no longer what they were.
std::shared_ptr<Plan> open_stored(const JobRecord& job, const JobBoard::Past& past);

// ---- for a job that can't be opened; these don't throw
// As much as can be told.
PlanSummary summary_of_stored(const JobRecord& job);
// Removes its unfinished output, where the record says which that is.
void discard_stored(const JobRecord& job);

}  // namespace goblin::lab
