// Written once, compiled for each vector width of the processor family and chosen when running.
#include "core/check/projection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/check/projection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace goblin {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

HWY_INLINE V load(D d, const double* from) {
    return hn::LoadU(d, from);
}
HWY_INLINE V load(D d, const float* from) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}

template <typename T>
bool is_negative_zero(T value) {
    return value == 0 && std::signbit(value);
}

// Several rows at once: memory delivers more to several streams, and the vectors are loaded once for all.
template <RowsOf rows_of, int rows>
HWY_INLINE void measure(D d, const V (&element)[rows], int64_t j, const Projection& p, V (&measured)[rows]) {
    if constexpr (rows_of == RowsOf::c) {
        const hn::RebindToUnsigned<D> du;
        const auto negative_zero = hn::SignBit(d);
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            const auto found = hn::Eq(hn::BitCast(du, element[i]), hn::BitCast(du, negative_zero));
            measured[i] = hn::IfThenElse(hn::RebindMask(d, found), hn::Set(d, 1.0), measured[i]);
        }
    } else {
        const V weight = load(d, p.weight + j);
        V column_norm2 = rows_of == RowsOf::b ? load(d, p.column_norm2 + j) : hn::Zero(d);
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            if constexpr (rows_of == RowsOf::a) {
                measured[i] = hn::MulAdd(hn::Abs(element[i]), weight, measured[i]);
            } else {
                const V scaled = hn::Mul(element[i], weight);
                measured[i] = hn::MulAdd(scaled, scaled, measured[i]);
                column_norm2 = hn::MulAdd(scaled, scaled, column_norm2);
            }
        }
        if constexpr (rows_of == RowsOf::b) hn::StoreU(column_norm2, d, p.column_norm2 + j);
    }
}

template <RowsOf rows_of, typename T>
double measure_one(T element, int64_t j, const Projection& p) {
    if constexpr (rows_of == RowsOf::c) return is_negative_zero(element) ? 1.0 : 0.0;
    if constexpr (rows_of == RowsOf::a) return std::abs(static_cast<double>(element)) * p.weight[j];
    const double scaled = static_cast<double>(element) * p.weight[j];
    p.column_norm2[j] += scaled * scaled;
    return scaled * scaled;
}

template <RowsOf rows_of, int rows>
void project_rows(const float* elements, int64_t stride, int64_t row, const Projection& p) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    V sum[rows][secret_vectors];
    V measured[rows];
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) sum[i][v] = hn::Zero(d);
        measured[i] = hn::Zero(d);
    }
    int64_t j = 0;
    for (; j + lanes <= p.cols; j += lanes) {
        V element[rows];
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) element[i] = load(d, elements + i * stride + j);
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) {
            const V vector = load(d, p.vector + v * p.vector_stride + j);
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i) sum[i][v] = hn::MulAdd(element[i], vector, sum[i][v]);
        }
        measure<rows_of>(d, element, j, p, measured);
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
        double total[secret_vectors];
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) total[v] = hn::GetLane(hn::SumOfLanes(d, sum[i][v]));
        double total_measured = hn::GetLane(hn::SumOfLanes(d, measured[i]));
        for (int64_t rest = j; rest < p.cols; ++rest) {
            const float element = elements[i * stride + rest];
#pragma GCC unroll 4
            for (int v = 0; v < secret_vectors; ++v)
                total[v] += static_cast<double>(element) * p.vector[v * p.vector_stride + rest];
            total_measured += measure_one<rows_of>(element, rest, p);
        }
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) p.sum[v * p.sum_stride + row + i] += total[v];
        p.measure[row + i] += total_measured;
    }
}

// high + low += element · (vector + vector_low): two-product and two-sum, whose errors go into low.
HWY_INLINE void add_exactly(V element, V vector, V& high, V& low) {
    const V product = hn::Mul(element, vector);
    const V product_error = hn::MulSub(element, vector, product);
    const V sum = hn::Add(high, product);
    const V part = hn::Sub(sum, high);
    const V sum_error = hn::Add(hn::Sub(high, hn::Sub(sum, part)), hn::Sub(product, part));
    high = sum;
    low = hn::Add(low, hn::Add(sum_error, product_error));
}

HWY_INLINE void add_exactly(double term, double& high, double& low) {
    const double sum = high + term;
    const double part = sum - high;
    low += (high - (sum - part)) + (term - part);
    high = sum;
}

template <RowsOf rows_of>
void project_row(const double* elements, int64_t row, const Projection& p) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    V high[secret_vectors], low[secret_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < secret_vectors; ++v) high[v] = low[v] = hn::Zero(d);
    V measured[1] = {hn::Zero(d)};
    int64_t j = 0;
    for (; j + lanes <= p.cols; j += lanes) {
        const V element[1] = {load(d, elements + j)};
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) {
            add_exactly(element[0], load(d, p.vector + v * p.vector_stride + j), high[v], low[v]);
            if (p.vector_low != nullptr)
                low[v] = hn::MulAdd(element[0], load(d, p.vector_low + v * p.vector_stride + j), low[v]);
        }
        measure<rows_of>(d, element, j, p, measured);
    }
    double total_measured = hn::GetLane(hn::SumOfLanes(d, measured[0]));
#pragma GCC unroll 4
    for (int v = 0; v < secret_vectors; ++v) {
        double& total = p.sum[v * p.sum_stride + row];
        double& total_low = p.sum_low[v * p.sum_stride + row];
        for (int64_t lane = 0; lane < lanes; ++lane) {
            add_exactly(hn::ExtractLane(high[v], static_cast<size_t>(lane)), total, total_low);
            total_low += hn::ExtractLane(low[v], static_cast<size_t>(lane));
        }
        for (int64_t rest = j; rest < p.cols; ++rest) {
            const double vector = p.vector[v * p.vector_stride + rest];
            const double product = elements[rest] * vector;
            add_exactly(product, total, total_low);
            total_low += std::fma(elements[rest], vector, -product);
            if (p.vector_low != nullptr)
                total_low += elements[rest] * p.vector_low[v * p.vector_stride + rest];
        }
    }
    for (int64_t rest = j; rest < p.cols; ++rest)
        total_measured += measure_one<rows_of>(elements[rest], rest, p);
    p.measure[row] += total_measured;
}

template <RowsOf rows_of>
void project_block(const float* elements, int64_t stride, const Projection& p) {
    constexpr int at_once = HWY_MAX_BYTES >= 64 ? 4 : 2;  // as many as there are registers for
    int64_t row = 0;
    for (; row + at_once <= p.rows; row += at_once)
        project_rows<rows_of, at_once>(elements + row * stride, stride, row, p);
    for (; row < p.rows; ++row) project_rows<rows_of, 1>(elements + row * stride, stride, row, p);
}

template <RowsOf rows_of>
void project_block(const double* elements, int64_t stride, const Projection& p) {
    for (int64_t row = 0; row < p.rows; ++row) project_row<rows_of>(elements + row * stride, row, p);
}

template <typename T>
void project_any(RowsOf rows_of, const T* elements, int64_t stride, const Projection& p) {
    switch (rows_of) {
        case RowsOf::a:
            return project_block<RowsOf::a>(elements, stride, p);
        case RowsOf::b:
            return project_block<RowsOf::b>(elements, stride, p);
        case RowsOf::c:
            return project_block<RowsOf::c>(elements, stride, p);
    }
}

template <int rows, typename T>
void measure_column_rows(const T* elements, int64_t stride, int64_t cols, double* norm2, double* largest) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= cols; j += lanes) {
        V squares = load(d, norm2 + j);
        V most = load(d, largest + j);
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            const V element = load(d, elements + i * stride + j);
            squares = hn::MulAdd(element, element, squares);
            most = hn::Max(most, hn::Abs(element));
        }
        hn::StoreU(squares, d, norm2 + j);
        hn::StoreU(most, d, largest + j);
    }
    for (; j < cols; ++j)
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            const auto element = static_cast<double>(elements[i * stride + j]);
            norm2[j] += element * element;
            largest[j] = std::max(largest[j], std::abs(element));
        }
}

template <typename T>
void measure_columns_any(const T* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                         double* largest) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
        measure_column_rows<4>(elements + row * stride, stride, cols, norm2, largest);
    for (; row < rows; ++row) measure_column_rows<1>(elements + row * stride, stride, cols, norm2, largest);
}

void project_f32(RowsOf rows_of, const float* elements, int64_t stride, const Projection& p) {
    project_any(rows_of, elements, stride, p);
}
void project_f64(RowsOf rows_of, const double* elements, int64_t stride, const Projection& p) {
    project_any(rows_of, elements, stride, p);
}
void columns_f32(const float* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                 double* largest) {
    measure_columns_any(elements, stride, rows, cols, norm2, largest);
}
void columns_f64(const double* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                 double* largest) {
    measure_columns_any(elements, stride, rows, cols, norm2, largest);
}

}  // namespace HWY_NAMESPACE
}  // namespace goblin
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace goblin {

HWY_EXPORT(project_f32);
HWY_EXPORT(project_f64);
HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);

void project(RowsOf rows_of, const float* elements, int64_t stride, const Projection& projection) {
    HWY_DYNAMIC_DISPATCH(project_f32)(rows_of, elements, stride, projection);
}
void project(RowsOf rows_of, const double* elements, int64_t stride, const Projection& projection) {
    HWY_DYNAMIC_DISPATCH(project_f64)(rows_of, elements, stride, projection);
}
void measure_columns(const float* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                     double* largest) {
    HWY_DYNAMIC_DISPATCH(columns_f32)(elements, stride, rows, cols, norm2, largest);
}
void measure_columns(const double* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                     double* largest) {
    HWY_DYNAMIC_DISPATCH(columns_f64)(elements, stride, rows, cols, norm2, largest);
}

}  // namespace goblin
#endif
