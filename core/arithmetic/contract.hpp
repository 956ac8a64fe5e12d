// The version of the arithmetic contract that this program computes by.
#pragma once

#include <cstdint>

namespace goblin {

// Changes with any change of a rule, of the functions or of an operator's definition; only equal versions
// share a task.
inline constexpr uint64_t contract_version = 1;

}  // namespace goblin
