// Administration of jobs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "labcli/node/lab_node.hpp"

namespace goblin::lab {

// kind, arguments (of the kind), verify, replicas, max_wrong → the plan, nothing is submitted
nlohmann::json job_plan(LabNode& node, const nlohmann::json& arguments);
// the same → id
nlohmann::json job_submit(LabNode& node, const nlohmann::json& arguments);
nlohmann::json job_list(LabNode& node, const nlohmann::json& arguments);
// id
nlohmann::json job_status(LabNode& node, const nlohmann::json& arguments);
// id, most
nlohmann::json job_logs(LabNode& node, const nlohmann::json& arguments);
// id
nlohmann::json job_stop(LabNode& node, const nlohmann::json& arguments);
// id
nlohmann::json job_delete(LabNode& node, const nlohmann::json& arguments);

}  // namespace goblin::lab
