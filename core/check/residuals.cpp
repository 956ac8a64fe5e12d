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

// Projects the rows of a block on vectors that are as long as the whole row.
template <typename T>
void project_block(RowsOf rows_of, const TypedBlock<T>& block, const Projected& vectors, const double* weight,
                   double* column_norm2, Projected& result) {
    const Block& place = block.place;
    const auto from = [](const auto* whole, int64_t offset) {
        return whole == nullptr ? nullptr : whole + offset;
    };
    const bool low = !result.low.empty();
    project(rows_of, block.elements, block.stride,
            {.rows = place.rows,
             .cols = place.cols,
             .vector = vectors.sum.data() + place.col,
             .vector_low = vectors.low.empty() ? nullptr : vectors.low.data() + place.col,
             .vector_stride = vectors.stride,
             .weight = from(weight, place.col),
             .sum = result.sum.data() + place.row,
             .sum_low = low ? result.low.data() + place.row : nullptr,
             .sum_stride = result.stride,
             .measure = result.measure.data() + place.row,
             .column_norm2 = column_norm2 == nullptr ? nullptr : column_norm2 + place.col});
}

// x and B · x.
struct ProjectedB {
    ColumnScales scales;
    ScaledColumns columns;
    Projected x;
    Projected y;  // measure: the norms of B's rows, scaled
};

template <typename T>
ProjectedB project_b(const Tile& tile, ColumnScales scales, SecretDraws& draws, DrawnElements<T>& drawn) {
    Projected x(tile.n(), false);
    x.sum = draws.signed_units(x.sum.size());
    for (size_t i = 0; i < x.sum.size(); ++i) x.sum[i] *= scales.factor[i % scales.factor.size()];

    Projected y(tile.k(), sizeof(T) == 8);
    const ColumnMask<T> mask(scales, tile.n());
    std::vector<std::vector<double>> column_norm2(tile.threads.count(),
                                                  std::vector<double>(static_cast<size_t>(tile.n())));
    for_each_row_band<T>(tile, tile.b, [&](const TypedBlock<T>& b, unsigned thread) {
        std::vector<T> memory;
        project_block(RowsOf::b, mask.apply(b, memory), x, scales.factor.data(), column_norm2[thread].data(),
                      y);
        drawn.collect(b);  // now that the block is in the cache
    });
    for (size_t thread = 1; thread < column_norm2.size(); ++thread)
        for (size_t j = 0; j < column_norm2[0].size(); ++j) column_norm2[0][j] += column_norm2[thread][j];

    const double smallest_norm = FloatTraits<T>::smallest_norm * std::sqrt(static_cast<double>(tile.n()));
    for (double& measure : y.measure) measure = std::sqrt(measure) + smallest_norm;
    const ScaledColumns columns = scaled_columns(scales, column_norm2[0]);
    return {std::move(scales), columns, std::move(x), std::move(y)};
}

template <typename T>
ProjectedB project_b(const Tile& tile, SecretDraws& draws, DrawnElements<T>& drawn) {
    if (may_estimate_scales<T>(tile)) {
        ProjectedB projected = project_b<T>(tile, estimated_scales<T>(tile, draws), draws, drawn);
        if (projected.columns.are_even()) return projected;
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
    ProjectedB b = project_b<T>(tile, draws, drawn);
    Projected z(tile.m(), sizeof(T) == 8);  // A·(B·x); measure: Σ_k |a_ik|·‖b_k‖
    for_each_row_band<T>(tile, tile.a, [&](const TypedBlock<T>& a, unsigned) {
        project_block(RowsOf::a, a, b.y, b.y.measure.data(), nullptr, z);
    });
    Projected w(tile.m(), sizeof(T) == 8);  // C·x; measure: −0 found
    const ColumnMask<T> mask(b.scales, tile.n());
    for_each_row_band<T>(tile, tile.c, [&](const TypedBlock<T>& c, unsigned) {
        std::vector<T> memory;
        project_block(RowsOf::c, mask.apply(c, memory), b.x, nullptr, nullptr, w);
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
