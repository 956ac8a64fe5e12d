// The verbs of the lab's own door: one table row each, with the names and types of their arguments.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "labcli/node/lab_node.hpp"

namespace goblin::lab {

// Throws goblin::Error with what was expected, what was found and the next step.
nlohmann::json administer(LabNode& node, std::string_view verb, const nlohmann::json& arguments);

}  // namespace goblin::lab
