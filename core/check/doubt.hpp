// Which rows of a float tile are doubted: computed again rather than taken for rounding.
//
// A row's level is its largest residual in units of its own threshold √K·u·Σ|a_ik|·‖b_k‖. Rounding has a
// level that is much the same for all rows of a tile, and usually far below λ; so the tile is judged by a
// rung of a fixed ladder just above what its rows show, and rows that stand out are computed again, the worst
// first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/check/secret.hpp"

namespace goblin {

// λ: rows above it are always doubted. From the experiment in docs/product-check.md.
inline constexpr double doubt_level = 40;
// The ladder's rungs are λ, λ/2, λ/4, … The bound pays for their number.
inline constexpr int level_rungs = 15;

// The lowest rung that covers the level; infinity above λ.
double rung_over(double level);

struct Doubted {
    std::vector<int64_t> rows;  // the worst first
    // Of the rows that were not doubted: their largest level and the rung over it; both 0 when all are.
    double largest_level = 0;
    double rung = 0;
};

// A level that is NaN is doubted. Besides the rows above λ, at most a thousandth of the rows (at least one)
// are.
Doubted doubted_rows(std::span<const double> levels, SecretDraws& draws);

}  // namespace goblin
