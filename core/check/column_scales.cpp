// Powers of two from the columns' norms.
#include "core/check/column_scales.hpp"

#include <cmath>
#include <limits>

#include "core/check/float_traits.hpp"
#include "core/check/projection.hpp"

namespace goblin {

namespace {

constexpr int64_t sampled_rows = 64;
constexpr int64_t strip_cols = 1024;
// Exact scales give at most 2.
constexpr double uneven = 8;

struct ColumnMeasures {
    explicit ColumnMeasures(int64_t cols) : norm2(static_cast<size_t>(cols)), largest(norm2.size()) {}

    template <typename T>
    void add(const TypedBlock<T>& block) {
        measure_columns(block.elements, block.stride, block.place.rows, block.place.cols,
                        norm2.data() + block.place.col, largest.data() + block.place.col);
    }

    std::vector<double> norm2;    // NaN where the column holds one
    std::vector<double> largest;  // magnitude
};

template <typename T>
ColumnScales scales_from(const ColumnMeasures& columns) {
    using Traits = FloatTraits<T>;
    ColumnScales scales;
    scales.factor.resize(columns.norm2.size(), Traits::zero_column_factor);
    for (size_t j = 0; j < scales.factor.size(); ++j) {
        const double norm2 = columns.norm2[j];
        const double largest = columns.largest[j];
        if (std::isnan(norm2)) {
            scales.nan.push_back(static_cast<int64_t>(j));
        } else if (std::isinf(largest)) {
            scales.infinite.push_back(static_cast<int64_t>(j));
        } else if (largest > 0) {
            // Squares of f64 may leave its range; the largest element is then near enough.
            const bool in_range = norm2 > 0x1p-900 && norm2 < 0x1p1000;
            const double norm = in_range ? std::sqrt(norm2) : largest;
            scales.factor[j] = std::ldexp(
                1.0, -std::clamp(std::ilogb(norm), Traits::least_exponent, Traits::largest_exponent));
        }
    }
    return scales;
}

}  // namespace

template <typename T>
ColumnScales exact_scales(const Tile& tile) {
    ColumnMeasures columns(tile.n());
    for_each_column_strip<T>(tile, tile.b, strip_cols, [&](const TypedBlock<T>& b) { columns.add(b); });
    return scales_from<T>(columns);
}

template <typename T>
bool may_estimate_scales(const Tile& tile) {
    return sizeof(T) == 4 && tile.k() >= 16 * sampled_rows;
}

template <typename T>
ColumnScales estimated_scales(const Tile& tile, SecretDraws& draws) {
    std::vector<int64_t> rows(sampled_rows);
    for (int64_t& row : rows) row = static_cast<int64_t>(draws.below(static_cast<uint64_t>(tile.k())));
    ColumnMeasures columns(tile.n());
    tile.threads.for_each(pieces_of(tile.n(), strip_cols), tile.stop, [&](int64_t strip, unsigned thread) {
        Workspace& buffer = tile.threads.buffer(thread);
        const int64_t col = strip * strip_cols;
        for (const int64_t row : rows)
            columns.add(view_block<T>(tile.b, {row, col, 1, std::min(strip_cols, tile.n() - col)}, buffer));
    });
    const double share = static_cast<double>(sampled_rows) / static_cast<double>(tile.k());
    for (double& norm2 : columns.norm2) norm2 /= share;
    return scales_from<T>(columns);
}

template <typename T>
ScaledColumns scaled_columns(const ColumnScales& scales, const std::vector<double>& norm2) {
    const auto is_absent = [&](size_t j) { return scales.factor[j] == FloatTraits<T>::zero_column_factor; };
    // Squares of factors may leave the range of f64: they are taken of ratios.
    double largest_factor = 0;
    for (size_t j = 0; j < norm2.size(); ++j)
        if (!is_absent(j)) largest_factor = std::max(largest_factor, scales.factor[j]);
    ScaledColumns columns;
    int64_t count = 0;
    double least2 = std::numeric_limits<double>::infinity();
    double total2 = 0;
    double inverse2 = 0;
    bool absent_are = true;
    for (size_t j = 0; j < norm2.size(); ++j) {
        total2 += norm2[j];
        if (is_absent(j)) {
            absent_are &= norm2[j] == 0;
            continue;
        }
        ++count;
        least2 = std::min(least2, norm2[j]);
        columns.widest = std::max(columns.widest, 1 / scales.factor[j]);
        inverse2 += (scales.factor[j] / largest_factor) * (scales.factor[j] / largest_factor);
    }
    if (count > 0) {
        columns.least_norm = std::sqrt(least2);
        columns.total_norm = std::sqrt(total2);
        columns.inverse_norm = largest_factor * std::sqrt(inverse2);
    }
    // False, too, where a number isn't finite.
    columns.even = absent_are &&
                   columns.total_norm <= uneven * std::sqrt(static_cast<double>(count)) * columns.least_norm;
    return columns;
}

#define GOBLIN_COLUMN_SCALES(T)                                           \
    template ColumnScales exact_scales<T>(const Tile&);                   \
    template bool may_estimate_scales<T>(const Tile&);                    \
    template ColumnScales estimated_scales<T>(const Tile&, SecretDraws&); \
    template ScaledColumns scaled_columns<T>(const ColumnScales&, const std::vector<double>&);
GOBLIN_COLUMN_SCALES(float)
GOBLIN_COLUMN_SCALES(double)
#undef GOBLIN_COLUMN_SCALES

}  // namespace goblin
