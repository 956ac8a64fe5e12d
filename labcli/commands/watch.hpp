// Watching a job from the command line: progress, time left, Ctrl-C to detach, the report at the end.
#pragma once

#include "labcli/commands/session.hpp"

namespace goblin::lab {

// Returns when the job is over (exit_done, exit_failed), or was detached from by Ctrl-C or after `timeout_ms`
// (exit_detached; 0: never).
int watch_job(const Session& session, uint64_t id, uint64_t timeout_ms);

// Who computed what, how it was verified and what that promises.
std::string report_text(const nlohmann::json& status);
// "job 3: running, 12 of 16 tasks (75 %), 3 s left: computing"
std::string progress_text(const nlohmann::json& status);

}  // namespace goblin::lab
