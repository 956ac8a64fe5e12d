// The product check of float tiles: a bound on the error by secret projections, exact recomputation of what
// is doubtful. docs/product-check.md derives every formula here.
#pragma once

#include <vector>

#include "core/check/product_check.hpp"
#include "core/check/recompute.hpp"

namespace goblin {

template <typename T>
ProductVerdict check_floats(const Tile& tile, SecretDraws& draws, double escape_probability);

// What the columns of B are multiplied with, so that each counts alike however large its numbers are.
struct ColumnScales {
    std::vector<double> factor;     // 2^-e, e the exponent of the column's norm
    std::vector<int64_t> nan;       // columns that hold a NaN
    std::vector<int64_t> infinite;  // columns that hold an infinity and no NaN
    double widest = 0;              // the largest 2^e of a column that isn't zero
    double looseness = 1;           // the largest 2^e ÷ norm
    double inverse_norm = 0;        // √Σ_j 2^(−2 e_j), over the same columns

    bool all_finite() const { return nan.empty() && infinite.empty(); }
};
template <typename T>
ColumnScales scales_of_columns(const Tile& tile);

// The measurement behind the verdict, one number for each row of C; the experiment reads it, too.
struct RowResiduals {
    std::vector<double> level;      // largest residual ÷ threshold; 0 ÷ 0 is 0, NaN where there is none
    std::vector<double> threshold;  // T at λ = 1
    std::vector<double> magnitude;  // Σ_k |a_ik|·‖b_k‖, with scaled columns
    std::vector<int64_t> negative_zeros;  // rows of C that hold a −0
    double scaled_norm = 0;               // √Σ_k ‖b_k‖²
};
template <typename T>
RowResiduals measure_residuals(const Tile& tile, const ColumnScales& scales, SecretDraws& draws,
                               DrawnElements<T>& drawn);

}  // namespace goblin
