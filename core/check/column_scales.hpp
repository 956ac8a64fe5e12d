// What B's columns are multiplied with in a float check, so that each counts alike however large its numbers
// are.
#pragma once

#include <vector>

#include "core/check/secret.hpp"
#include "core/check/tile.hpp"

namespace goblin {

// Any powers of two keep the check's promise; the nearer to the columns' norms, the tighter its bounds.
struct ColumnScales {
    std::vector<double>
        factor;  // 2^-e, e the exponent of the column's norm; for columns without any numbers but
                 // zeros, and for those that aren't finite, FloatTraits::zero_column_factor
    std::vector<int64_t> nan;       // columns that hold a NaN
    std::vector<int64_t> infinite;  // columns that hold an infinity and no NaN

    bool all_finite() const { return nan.empty() && infinite.empty(); }
};

// From a pass over B.
template <typename T>
ColumnScales exact_scales(const Tile& tile);

// From some rows of B, where a pass would cost much more and they represent the others: whether they do shows
// when B is projected. Columns that aren't finite may go unnoticed.
template <typename T>
bool may_estimate_scales(const Tile& tile);
template <typename T>
ColumnScales estimated_scales(const Tile& tile, SecretDraws& draws);

// What B's columns are once scaled; those of zeros, and without finite numbers, count as absent.
struct ScaledColumns {
    double least_norm = 0;    // of a column
    double total_norm = 0;    // of all together
    double widest = 0;        // the largest 2^e
    double inverse_norm = 0;  // √Σ_j 2^(−2 e_j)
    // No column is far from the others, and those taken for zeros are. Exact scales see to that; estimated
    // ones may not.
    bool even = false;
};
// norm2: the squared norm of each scaled column.
template <typename T>
ScaledColumns scaled_columns(const ColumnScales& scales, const std::vector<double>& norm2);

// Blocks of B and C with zeros in the columns in which B has no finite numbers.
template <typename T>
class ColumnMask {
  public:
    ColumnMask(const ColumnScales& scales, int64_t cols) {
        if (scales.all_finite()) return;
        masked_.resize(static_cast<size_t>(cols));
        for (const auto* group : {&scales.nan, &scales.infinite})
            for (const int64_t col : *group) masked_[static_cast<size_t>(col)] = true;
    }

    // The block itself, or a copy in `memory`.
    TypedBlock<T> apply(const TypedBlock<T>& block, std::vector<T>& memory) const {
        if (masked_.empty()) return block;
        memory.resize(static_cast<size_t>(block.place.elements()));
        for (int64_t i = 0; i < block.place.rows; ++i)
            for (int64_t j = 0; j < block.place.cols; ++j)
                memory[static_cast<size_t>(i * block.place.cols + j)] =
                    masked_[static_cast<size_t>(block.place.col + j)] ? T{0} : block.at(i, j);
        return {block.place, memory.data(), block.place.cols};
    }

  private:
    std::vector<bool> masked_;  // empty: nothing is
};

}  // namespace goblin
