// The job C = A · B over .npy files: tiles of C as tasks, merged straight into the output file.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "labcli/jobs/capacity.hpp"
#include "labcli/jobs/plan.hpp"

namespace goblin::lab {

inline constexpr std::string_view product_kind = "product";

// Arguments: a, b, output (absolute paths), overwrite (bool), tile ("ROWSxCOLS" or empty: chosen by
// capacity).
nlohmann::json plan_product(const nlohmann::json& arguments, const Capacity& capacity);
std::shared_ptr<Plan> open_product(nlohmann::json& specification, bool fresh);
PlanSummary summarize_product(const nlohmann::json& specification);
void discard_product(const nlohmann::json& specification);

}  // namespace goblin::lab
