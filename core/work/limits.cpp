// The table of limits as data, for documentation and tests.
#include "core/work/limits.hpp"

#include <array>

namespace goblin {

std::span<const LimitInfo> all_limits() {
    static constexpr std::array table = {
#define GOBLIN_LIMIT_ROW(name, value, unit, what) LimitInfo{#name, value, unit, what},
        GOBLIN_LIMITS(GOBLIN_LIMIT_ROW)
#undef GOBLIN_LIMIT_ROW
    };
    return table;
}

}  // namespace goblin
