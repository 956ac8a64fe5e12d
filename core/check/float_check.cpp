// Looks at everything that could convict, the cheapest first; states bounds for what was not recomputed.
#include "core/check/float_check.hpp"

#include <cmath>
#include <limits>

#include "core/check/doubt.hpp"
#include "core/check/float_traits.hpp"
#include "core/check/projection.hpp"
#include "core/check/recompute.hpp"
#include "core/check/residuals.hpp"

namespace goblin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct DoubtedRows {
    std::vector<int64_t> nan;      // a NaN in the row of A: every element is NaN
    std::vector<int64_t> chained;  // all others
};

template <typename T>
DoubtedRows split_by_nan(const Tile& tile, std::span<const int64_t> doubted, const RowResiduals& rows) {
    std::vector<uint8_t> has_nan(doubted.size());
    tile.threads.for_each(
        static_cast<int64_t>(doubted.size()), tile.stop, [&](int64_t item, unsigned thread) {
            Workspace& buffer = tile.threads.buffer(thread);
            const int64_t row = doubted[static_cast<size_t>(item)];
            if (std::isfinite(rows.magnitude[static_cast<size_t>(row)])) return;
            const auto a = view_block<T>(tile.a, {row, 0, 1, tile.k()}, buffer);
            has_nan[static_cast<size_t>(item)] =
                std::any_of(a.elements, a.elements + tile.k(), [](T element) { return std::isnan(element); });
        });
    DoubtedRows split;
    for (size_t item = 0; item < doubted.size(); ++item)
        (has_nan[item] != 0 ? split.nan : split.chained).push_back(doubted[item]);
    return split;
}

// An element that is off by δ, in units of its column's scale, moves each of its row's residuals by δ·x, x
// uniform among 2^24 values in (−1, 1). The residual stays within T with a probability of at most T/δ + 2^-24
// + the check's rounding for each vector; and T may come from any of level_rungs rungs.
template <typename T>
void state_bounds(const Tile& tile, const RowResiduals& rows, const Doubted& doubted,
                  double escape_probability, ProductVerdict& verdict) {
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
    for (size_t row = 0; row < rows.threshold.size(); ++row)
        if (!is_doubted[row]) threshold = std::max(threshold, rows.threshold[row]);

    verdict.escape_probability = escape_probability;
    verdict.largest_residual = doubted.largest_level;
    if (threshold == 0) return;  // zeros: exact but for that probability
    // Σ|a_ik|·‖b_k‖ ≤ ‖a_i‖·√Σ‖b_k‖², and 2^e_j ≤ ‖column j‖ ÷ the least norm once scaled; as well as they
    // are measured.
    const double measured = 1 + 2 * (n + k) * Traits::unit_roundoff;
    verdict.relative_bound = factor * rounding * measured * rows.columns.total_norm / rows.columns.least_norm;
    verdict.underflow_bound = factor * rows.underflow_threshold * rows.columns.widest;
    verdict.absolute_bound = factor * threshold * rows.columns.widest;
}

}  // namespace

template <typename T>
ProductVerdict check_floats(const Tile& tile, SecretDraws& draws, double escape_probability) {
    DrawnElements<T> drawn(tile, draws);
    RowResiduals rows = measure_residuals<T>(tile, draws, drawn);
    for (size_t row = 0; row < rows.level.size(); ++row)
        if (rows.negative_zero[row]) rows.level[row] = infinity;
    const Doubted doubted = doubted_rows(rows.level, draws);
    const DoubtedRows doubted_by_kind = split_by_nan<T>(tile, doubted.rows, rows);

    const uint64_t nan_bits = bits_of(canonical_nan<T>());
    ProductVerdict verdict;
    verdict.conviction = drawn.recompute();
    verdict.elements_recomputed = drawn.count();
    if (!verdict.conviction) verdict.conviction = expect_columns<T>(tile, rows.scales.nan, nan_bits);
    if (!verdict.conviction) verdict.conviction = expect_rows<T>(tile, doubted_by_kind.nan, nan_bits);
    if (!verdict.conviction) {
        verdict.conviction = recompute_rows<T>(tile, doubted_by_kind.chained);
        verdict.rows_recomputed = static_cast<int64_t>(doubted_by_kind.chained.size());
    }
    if (!verdict.conviction) {
        verdict.conviction = recompute_columns<T>(tile, rows.scales.infinite);
        verdict.elements_recomputed += static_cast<int64_t>(rows.scales.infinite.size()) * tile.m();
    }
    if (!verdict.conviction && doubted.rows.size() < rows.level.size())
        state_bounds<T>(tile, rows, doubted, escape_probability, verdict);
    return verdict;
}

template ProductVerdict check_floats<float>(const Tile&, SecretDraws&, double);
template ProductVerdict check_floats<double>(const Tile&, SecretDraws&, double);

}  // namespace goblin
