// Administration of invites.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "labcli/node/lab_node.hpp"

namespace goblin::lab {

// uses, expires_ms (from now), trusted, host ("NAME[:PORT]") → link, id, uses, expires_at_ms
nlohmann::json invite_create(LabNode& node, const nlohmann::json& arguments);
nlohmann::json invite_list(LabNode& node, const nlohmann::json& arguments);
// id
nlohmann::json invite_revoke(LabNode& node, const nlohmann::json& arguments);

}  // namespace goblin::lab
