// Three passes: B, A and C are projected; a fourth, over B, where its columns' scales cannot be estimated.
#include "core/check/residuals.hpp"

#include <cmath>
#include <limits>

#include "core/check/doubt.hpp"
#include "core/check/float_traits.hpp"
#include "core/check/projection.hpp"

namespace goblin {

namespace {

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

// Projects the rows of a block on vectors that are as long as the whole row. The last two are given where the
// kind of rows needs them.
template <typename T>
void project_block(RowsOf rows_of, const TypedBlock<T>& block, const Projected& vectors, Projected& result,
                   const std::vector<T>& weight, std::vector<T>& column_norm2) {
    const Block& place = block.place;
    const auto part = [](auto& whole, int64_t offset) {
        return whole.empty() ? nullptr : whole.data() + offset;
    };
    project(rows_of, block.elements, block.stride,
            Projection<T>{.rows = place.rows,
                          .cols = place.cols,
                          .vector = part(vectors.sum, place.col),
                          .vector_low = part(vectors.low, place.col),
                          .vector_stride = vectors.stride,
                          .weight = part(weight, place.col),
                          .sum = part(result.sum, place.row),
                          .sum_low = part(result.low, place.row),
                          .sum_stride = result.stride,
                          .measure = part(result.measure, place.row),
                          .column_norm2 = part(column_norm2, place.col)});
}

// x and B · x.
template <typename T>
struct ProjectedB {
    ColumnScales scales;
    ScaledColumns columns;
    Projected x;
    Projected y;
    std::vector<T> row_norms;  // of B, scaled
};

template <typename T>
ProjectedB<T> project_b(const Tile& tile, ColumnScales scales, SecretDraws& draws, DrawnElements<T>& drawn) {
    Projected x(tile.n(), false);
    x.sum = draws.signed_units(x.sum.size());
    for (size_t i = 0; i < x.sum.size(); ++i) x.sum[i] *= scales.factor[i % scales.factor.size()];

    // Zeros stay zeros, and what was taken for one by mistake shows.
    const double largest_weight = std::ldexp(1.0, -FloatTraits<T>::least_exponent);
    std::vector<T> weight;
    for (const double factor : scales.factor)
        weight.push_back(static_cast<T>(std::min(factor, largest_weight)));

    Projected y(tile.k(), sizeof(T) == 8);
    const ColumnMask<T> mask(scales, tile.n());
    std::vector<std::vector<T>> column_norm2(tile.threads.count(), std::vector<T>(weight.size()));
    for_each_row_band<T>(tile, tile.b, [&](const TypedBlock<T>& b, unsigned thread) {
        std::vector<T> memory;
        project_block(RowsOf::b, mask.apply(b, memory), x, y, weight, column_norm2[thread]);
        drawn.collect(b);  // now that the block is in the cache
    });
    std::vector<double> norm2(weight.size());
    for (const std::vector<T>& part : column_norm2)
        for (size_t j = 0; j < norm2.size(); ++j) norm2[j] += static_cast<double>(part[j]);

    const double smallest_norm = FloatTraits<T>::smallest_norm * std::sqrt(static_cast<double>(tile.n()));
    std::vector<T> row_norms;
    for (const double measure : y.measure)
        row_norms.push_back(static_cast<T>(std::sqrt(measure) + smallest_norm));
    const ScaledColumns columns = scaled_columns<T>(scales, norm2);
    return {std::move(scales), columns, std::move(x), std::move(y), std::move(row_norms)};
}

template <typename T>
ProjectedB<T> project_b(const Tile& tile, SecretDraws& draws, DrawnElements<T>& drawn) {
    if (may_estimate_scales<T>(tile)) {
        ProjectedB<T> projected = project_b<T>(tile, estimated_scales<T>(tile, draws), draws, drawn);
        if (projected.columns.even) return projected;
    }
    return project_b<T>(tile, exact_scales<T>(tile), draws, drawn);
}

// The largest of a row's residuals |w − z|; NaN if one is.
double residual_of(const Projected& w, const Projected& z, int64_t row) {
    double largest = 0;
    for (auto at = static_cast<size_t>(row); at < w.sum.size(); at += static_cast<size_t>(w.stride)) {
        double difference = w.sum[at] - z.sum[at];
        if (!w.low.empty()) difference += w.low[at] - z.low[at];
        if (std::isnan(difference)) return difference;
        largest = std::max(largest, std::abs(difference));
    }
    return largest;
}

double level_of(double residual, double threshold) {
    if (!std::isfinite(residual) || !std::isfinite(doubt_level * threshold))
        return std::numeric_limits<double>::infinity();
    if (threshold == 0) return residual == 0 ? 0 : std::numeric_limits<double>::infinity();
    return residual / threshold;
}

}  // namespace

template <typename T>
RowResiduals measure_residuals(const Tile& tile, SecretDraws& draws, DrawnElements<T>& drawn) {
    using Traits = FloatTraits<T>;
    ProjectedB<T> b = project_b<T>(tile, draws, drawn);
    std::vector<T> none;
    Projected z(tile.m(), sizeof(T) == 8);  // A·(B·x); measure: Σ_k |a_ik|·‖b_k‖
    for_each_row_band<T>(tile, tile.a, [&](const TypedBlock<T>& a, unsigned) {
        project_block(RowsOf::a, a, b.y, z, b.row_norms, none);
    });
    Projected w(tile.m(), sizeof(T) == 8);  // C·x; measure: −0 found
    const ColumnMask<T> mask(b.scales, tile.n());
    for_each_row_band<T>(tile, tile.c, [&](const TypedBlock<T>& c, unsigned) {
        std::vector<T> memory;
        project_block(RowsOf::c, mask.apply(c, memory), b.x, w, none, none);
    });

    const auto k = static_cast<double>(tile.k());
    const double rounding = std::sqrt(k) * Traits::unit_roundoff;
    RowResiduals rows;
    rows.underflow_threshold = k * Traits::underflow * b.columns.inverse_norm +
                               (static_cast<double>(tile.n()) + k) * Traits::smallest_threshold;
    for (int64_t row = 0; row < tile.m(); ++row) {
        const double magnitude = z.measure[static_cast<size_t>(row)];
        // Where nothing but zeros was added up there is neither rounding nor underflow.
        const double threshold = magnitude == 0 ? 0 : rounding * magnitude + rows.underflow_threshold;
        rows.magnitude.push_back(magnitude);
        rows.threshold.push_back(threshold);
        rows.level.push_back(level_of(residual_of(w, z, row), threshold));
        rows.negative_zero.push_back(w.measure[static_cast<size_t>(row)] != 0);
    }
    rows.scales = std::move(b.scales);
    rows.columns = b.columns;
    return rows;
}

template RowResiduals measure_residuals<float>(const Tile&, SecretDraws&, DrawnElements<float>&);
template RowResiduals measure_residuals<double>(const Tile&, SecretDraws&, DrawnElements<double>&);

}  // namespace goblin
