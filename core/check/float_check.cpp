// Four passes: B for its columns' scales, B, A and C for their projections; then the rows' levels decide.
#include "core/check/float_check.hpp"

#include <cmath>
#include <limits>
#include <mutex>

#include "core/check/doubt.hpp"
#include "core/check/projection.hpp"

namespace goblin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What the two types differ in.
template <typename T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
    static constexpr double unit_roundoff = 0x1p-24;
    static constexpr double underflow = 0x1p-150;      // error of one step among subnormals
    static constexpr double check_roundoff = 0x1p-53;  // of the check's own sums
    static constexpr int scale_exponents = 1000;       // column exponents are clamped to ± this
    static constexpr double zero_column_factor =
        0x1p400;                                     // makes any claimed element of a zero column outstanding
    static constexpr double smallest_norm = 0;       // f64 keeps every square of a scaled f32
    static constexpr double smallest_threshold = 0;  // and every product
};
template <>
struct FloatTraits<double> {
    static constexpr double unit_roundoff = 0x1p-53;
    static constexpr double underflow = 0x1p-1074;  // half of it is no number
    static constexpr double check_roundoff = 0x1p-100;
    static constexpr int scale_exponents = 990;
    static constexpr double zero_column_factor = 0x1p990;
    static constexpr double smallest_norm = 0x1p-510;
    static constexpr double smallest_threshold = 0x1p-1060;
};

// Blocks of B and C without the columns in which B has no finite numbers.
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

// secret_vectors numbers for each row of a matrix, in two parts for f64.
struct Projected {
    Projected(int64_t rows, bool with_low)
        : stride(rows),
          sum(static_cast<size_t>(secret_vectors * rows)),
          low(with_low ? sum.size() : 0),
          measure(static_cast<size_t>(rows)) {}

    int64_t stride;
    std::vector<double> sum;
    std::vector<double> low;
    std::vector<double> measure;
};

// Projects the rows of a block on vectors that are as long as the whole row.
template <typename T>
void project_block(RowsOf rows_of, const TypedBlock<T>& block, const Projected& vectors, const double* weight,
                   Projected& result) {
    const Block& place = block.place;
    project(rows_of, block.elements, block.stride,
            {.rows = place.rows,
             .cols = place.cols,
             .vector = vectors.sum.data() + place.col,
             .vector_low = vectors.low.empty() ? nullptr : vectors.low.data() + place.col,
             .vector_stride = vectors.stride,
             .weight = weight == nullptr ? nullptr : weight + place.col,
             .sum = result.sum.data() + place.row,
             .sum_low = result.low.empty() ? nullptr : result.low.data() + place.row,
             .sum_stride = result.stride,
             .measure = result.measure.data() + place.row});
}

// Threshold that underflow alone asks for: K steps of C, and what underflows in the check itself.
template <typename T>
double underflow_threshold(const Tile& tile, const ColumnScales& scales) {
    using Traits = FloatTraits<T>;
    const auto k = static_cast<double>(tile.k());
    return k * Traits::underflow * scales.inverse_norm +
           (static_cast<double>(tile.n()) + k) * Traits::smallest_threshold;
}

double level_of(double residual, double threshold) {
    if (!std::isfinite(residual) || !std::isfinite(doubt_level * threshold)) return infinity;
    if (threshold == 0) return residual == 0 ? 0 : infinity;
    return residual / threshold;
}

// The rows whose operand has a NaN, which makes every element NaN, and the others, both in the order given.
template <typename T>
std::pair<std::vector<int64_t>, std::vector<int64_t>> split_by_nan(const Tile& tile,
                                                                   std::span<const int64_t> doubted,
                                                                   const RowResiduals& rows) {
    std::vector<int64_t> with_nan, without;
    std::vector<uint8_t> has_nan(doubted.size());
    tile.threads.for_each(
        static_cast<int64_t>(doubted.size()), tile.stop, [&](int64_t item, Workspace& buffer) {
            const int64_t row = doubted[static_cast<size_t>(item)];
            if (std::isfinite(rows.magnitude[static_cast<size_t>(row)])) return;
            const auto a = view_block<T>(tile.a, {row, 0, 1, tile.k()}, buffer);
            has_nan[static_cast<size_t>(item)] =
                std::any_of(a.elements, a.elements + tile.k(), [](T element) { return std::isnan(element); });
        });
    for (size_t item = 0; item < doubted.size(); ++item)
        (has_nan[item] != 0 ? with_nan : without).push_back(doubted[item]);
    return {with_nan, without};
}

// An element off by δ in units of its column's scale moves each residual by δ·x, x uniform among 2^24 values
// in (−1, 1). It stays within T with a probability of at most T/δ + 2^-24 + (the check's rounding) for each
// vector, and the rung that T came from is one of level_rungs.
template <typename T>
void state_bounds(const Tile& tile, const ColumnScales& scales, const RowResiduals& rows,
                  const Doubted& doubted, double escape_probability, ProductVerdict& verdict) {
    using Traits = FloatTraits<T>;
    const auto n = static_cast<double>(tile.n());
    const auto k = static_cast<double>(tile.k());
    const double terms = n + k + 8;
    const double for_each_vector = std::pow(escape_probability / level_rungs, 1.0 / secret_vectors) -
                                   0x1p-24 - n * terms * Traits::check_roundoff;
    const double rounding = std::sqrt(k) * Traits::unit_roundoff;
    const double rung = doubted.rung + 2 * std::sqrt(n) * terms * Traits::check_roundoff / rounding;
    const double factor = for_each_vector > 0 ? rung / for_each_vector : infinity;

    std::vector<bool> is_doubted(rows.level.size());
    for (const int64_t row : doubted.rows) is_doubted[static_cast<size_t>(row)] = true;
    double threshold = 0;
    for (size_t i = 0; i < rows.threshold.size(); ++i)
        if (!is_doubted[i]) threshold = std::max(threshold, rows.threshold[i]);

    verdict.escape_probability = escape_probability;
    verdict.largest_residual = doubted.largest_level;
    verdict.relative_bound = factor * rounding * rows.scaled_norm * scales.looseness;
    verdict.underflow_bound = factor * underflow_threshold<T>(tile, scales) * scales.widest;
    verdict.absolute_bound = factor * threshold * scales.widest;
}

}  // namespace

template <typename T>
ColumnScales scales_of_columns(const Tile& tile) {
    using Traits = FloatTraits<T>;
    const auto cols = static_cast<size_t>(tile.n());
    std::vector<double> norm2(cols), largest(cols);
    for_each_column_strip<T>(tile, tile.b, [&](const TypedBlock<T>& b) {
        measure_columns(b.elements, b.stride, b.place.rows, b.place.cols, norm2.data() + b.place.col,
                        largest.data() + b.place.col);
    });

    ColumnScales scales;
    scales.factor.resize(cols, 1.0);
    for (size_t j = 0; j < cols; ++j) {
        if (std::isnan(norm2[j])) {
            scales.nan.push_back(static_cast<int64_t>(j));
        } else if (std::isinf(largest[j])) {
            scales.infinite.push_back(static_cast<int64_t>(j));
        } else if (largest[j] == 0) {
            scales.factor[j] = Traits::zero_column_factor;
        } else {
            // Squares of f64 may leave its range; the largest element is then as good.
            const bool in_range = norm2[j] > 0x1p-900 && norm2[j] < 0x1p1000;
            const double norm = in_range ? std::sqrt(norm2[j]) : largest[j];
            const int exponent =
                std::clamp(std::ilogb(norm), -Traits::scale_exponents, Traits::scale_exponents);
            scales.factor[j] = std::ldexp(1.0, -exponent);
            scales.widest = std::max(scales.widest, std::ldexp(1.0, exponent));
            scales.looseness = std::max(scales.looseness, std::ldexp(1.0, exponent) / norm);
            scales.inverse_norm = std::hypot(scales.inverse_norm, scales.factor[j]);
        }
    }
    return scales;
}

template <typename T>
RowResiduals measure_residuals(const Tile& tile, const ColumnScales& scales, SecretDraws& draws,
                               DrawnElements<T>& drawn) {
    using Traits = FloatTraits<T>;
    constexpr bool with_low = sizeof(T) == 8;
    const ColumnMask<T> mask(scales, tile.n());

    Projected x(tile.n(), false);
    x.sum = draws.signed_units(x.sum.size());
    for (size_t i = 0; i < x.sum.size(); ++i) x.sum[i] *= scales.factor[i % scales.factor.size()];

    Projected y(tile.k(), with_low);  // B·x, and the scaled norms of B's rows
    for_each_row_band<T>(tile, tile.b, [&](const TypedBlock<T>& b) {
        drawn.collect(b);
        std::vector<T> memory;
        project_block(RowsOf::b, mask.apply(b, memory), x, scales.factor.data(), y);
    });
    RowResiduals rows;
    const double smallest_norm = Traits::smallest_norm * std::sqrt(static_cast<double>(tile.n()));
    for (double& measure : y.measure) {
        rows.scaled_norm = std::hypot(rows.scaled_norm, std::sqrt(measure) + smallest_norm);
        measure = std::sqrt(measure) + smallest_norm;
    }

    Projected z(tile.m(), with_low);  // A·(B·x), and Σ_k |a_ik|·‖b_k‖
    for_each_row_band<T>(
        tile, tile.a, [&](const TypedBlock<T>& a) { project_block(RowsOf::a, a, y, y.measure.data(), z); });
    Projected w(tile.m(), with_low);  // C·x
    for_each_row_band<T>(tile, tile.c, [&](const TypedBlock<T>& c) {
        std::vector<T> memory;
        project_block(RowsOf::c, mask.apply(c, memory), x, nullptr, w);
    });

    const auto k = static_cast<double>(tile.k());
    const double rounding = std::sqrt(k) * Traits::unit_roundoff;
    const double underflow = underflow_threshold<T>(tile, scales);
    for (size_t i = 0; i < z.measure.size(); ++i) {
        if (w.measure[i] != 0) rows.negative_zeros.push_back(static_cast<int64_t>(i));
        double residual = 0;
        for (size_t v = i; v < z.sum.size(); v += z.measure.size()) {
            double difference = w.sum[v] - z.sum[v];
            if (with_low) difference += w.low[v] - z.low[v];
            residual = std::abs(difference) <= residual ? residual : std::abs(difference);  // NaN stays
            if (std::isnan(difference)) break;
        }
        const double magnitude = z.measure[i];
        // Nothing but zeros was added up: no rounding, no underflow.
        const double threshold = magnitude == 0 ? 0 : rounding * magnitude + underflow;
        rows.magnitude.push_back(magnitude);
        rows.threshold.push_back(threshold);
        rows.level.push_back(level_of(residual, threshold));
    }
    return rows;
}

template <typename T>
ProductVerdict check_floats(const Tile& tile, SecretDraws& draws, double escape_probability) {
    ProductVerdict verdict;
    const ColumnScales scales = scales_of_columns<T>(tile);
    DrawnElements<T> drawn(tile, draws);
    RowResiduals rows = measure_residuals<T>(tile, scales, draws, drawn);
    for (const int64_t row : rows.negative_zeros) rows.level[static_cast<size_t>(row)] = infinity;
    const Doubted doubted = doubted_rows(rows.level, draws);
    const auto [nan_rows, chained_rows] = split_by_nan<T>(tile, doubted.rows, rows);

    const uint64_t nan_bits = bits_of(canonical_nan<T>());
    verdict.conviction = drawn.recompute();
    verdict.elements_recomputed = drawn.count();
    if (!verdict.conviction) verdict.conviction = expect_columns<T>(tile, scales.nan, nan_bits);
    if (!verdict.conviction) verdict.conviction = expect_rows<T>(tile, nan_rows, nan_bits);
    if (!verdict.conviction) {
        verdict.conviction = recompute_rows<T>(tile, chained_rows);
        verdict.rows_recomputed = static_cast<int64_t>(chained_rows.size());
    }
    if (!verdict.conviction) {
        verdict.conviction = recompute_columns<T>(tile, scales.infinite);
        verdict.elements_recomputed += static_cast<int64_t>(scales.infinite.size()) * tile.m();
    }
    if (!verdict.conviction && doubted.rows.size() < rows.level.size())
        state_bounds<T>(tile, scales, rows, doubted, escape_probability, verdict);
    return verdict;
}

#define GOBLIN_FLOAT_CHECK(T)                                                                  \
    template ProductVerdict check_floats<T>(const Tile&, SecretDraws&, double);                \
    template ColumnScales scales_of_columns<T>(const Tile&);                                   \
    template RowResiduals measure_residuals<T>(const Tile&, const ColumnScales&, SecretDraws&, \
                                               DrawnElements<T>&);
GOBLIN_FLOAT_CHECK(float)
GOBLIN_FLOAT_CHECK(double)
#undef GOBLIN_FLOAT_CHECK

}  // namespace goblin
