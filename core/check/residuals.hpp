// The measurement behind a float check: how far each row of C is from A · (B · x), for secret vectors x.
#pragma once

#include <vector>

#include "core/check/column_scales.hpp"
#include "core/check/recompute.hpp"

namespace goblin {

// One number for each row of C.
struct RowResiduals {
    std::vector<double> level;  // largest residual ÷ threshold; infinity where either isn't finite
    std::vector<double>
        threshold;  // T at λ = 1: √K·u·magnitude + what underflow may add; 0 for rows of zeros
    std::vector<double> magnitude;    // Σ_k |a_ik|·‖b_k‖ with scaled columns
    std::vector<bool> negative_zero;  // the row holds a −0, which no product is

    ColumnScales scales;
    ScaledColumns columns;
    double underflow_threshold = 0;  // the part of the threshold that doesn't depend on the row
};

template <typename T>
RowResiduals measure_residuals(const Tile& tile, SecretDraws& draws, DrawnElements<T>& drawn);

}  // namespace goblin
