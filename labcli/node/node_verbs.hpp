// Administration of contributors.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "labcli/node/lab_node.hpp"

namespace goblin::lab {

nlohmann::json node_list(LabNode& node, const nlohmann::json& arguments);
// id, as are all below
nlohmann::json node_show(LabNode& node, const nlohmann::json& arguments);
// The computer's volunteer with all of its computers.
nlohmann::json node_approve(LabNode& node, const nlohmann::json& arguments);
// scope: "volunteer" or "computer"
nlohmann::json node_ban(LabNode& node, const nlohmann::json& arguments);
nlohmann::json node_forget(LabNode& node, const nlohmann::json& arguments);

}  // namespace goblin::lab
