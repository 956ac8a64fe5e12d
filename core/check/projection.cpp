// Written once, compiled for each vector width of the processor family and chosen when running.
#include "core/check/projection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/check/projection.cpp"
#include <hwy/cache_control.h>
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

// What is found out about several rows beside their projections.
template <RowsOf rows_of, typename T, int rows>
class Measured {
  public:
    HWY_INLINE Measured() {
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) found_[i] = hn::Zero(D());
    }

    // A vector of columns j, j + 1, … in each row.
    HWY_INLINE void add(const T* elements, int64_t stride, int64_t j, const Projection<T>& p) {
        const hn::ScalableTag<T> d;
        if constexpr (rows_of == RowsOf::c) {
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i)  // as an integer, −0 is the smallest
                found_[i] = hn::Min(found_[i], hn::BitCast(D(), hn::LoadU(d, elements + i * stride + j)));
        } else if constexpr (rows_of == RowsOf::a) {
            const auto weight = hn::LoadU(d, p.weight + j);
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i)
                found_[i] = hn::MulAdd(hn::Abs(hn::LoadU(d, elements + i * stride + j)), weight, found_[i]);
        } else {
            const auto weight = hn::LoadU(d, p.weight + j);
            auto column_norm2 = hn::LoadU(d, p.column_norm2 + j);
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i) {
                const auto scaled = hn::Mul(hn::LoadU(d, elements + i * stride + j), weight);
                found_[i] = hn::MulAdd(scaled, scaled, found_[i]);
                column_norm2 = hn::MulAdd(scaled, scaled, column_norm2);
            }
            hn::StoreU(column_norm2, d, p.column_norm2 + j);
        }
    }

    // Row i's vectors together with its columns from `rest` on, of which there are less than a vector.
    double finish(int i, const T* row, int64_t rest, const Projection<T>& p) const {
        if constexpr (rows_of == RowsOf::c) {
            bool found = hn::GetLane(hn::MinOfLanes(D(), found_[i])) == std::numeric_limits<Bits>::min();
            for (int64_t j = rest; j < p.cols; ++j) found |= row[j] == 0 && std::signbit(row[j]);
            return found ? 1 : 0;
        } else {
            auto total = static_cast<double>(hn::GetLane(hn::SumOfLanes(D(), found_[i])));
            for (int64_t j = rest; j < p.cols; ++j) {
                if constexpr (rows_of == RowsOf::a) {
                    total += static_cast<double>(std::abs(row[j]) * p.weight[j]);
                } else {
                    const T scaled = row[j] * p.weight[j];
                    total += static_cast<double>(scaled * scaled);
                    p.column_norm2[j] += scaled * scaled;
                }
            }
            return total;
        }
    }

  private:
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    using D = hn::ScalableTag<std::conditional_t<rows_of == RowsOf::c, Bits, T>>;
    hn::Vec<D> found_[rows];
};

// Where memory is to be fetched from beforehand: the processor's own fetching ends at each page, and four
// rows are four pages at a time.
constexpr int64_t fetched_ahead = 192;

// Several rows at once: memory delivers more to several streams, and the vectors are loaded once for all.
template <RowsOf rows_of, int rows>
void project_rows(const float* elements, int64_t stride, int64_t row, const Projection<float>& p) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto step = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    V sum[rows][secret_vectors];
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) sum[i][v] = hn::Zero(d);
    Measured<rows_of, float, rows> measured;
    int64_t rest = 0;
    for (; rest + step <= p.cols; rest += step) {
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) hwy::Prefetch(elements + i * stride + rest + fetched_ahead);
        for (int64_t j = rest; j < rest + step; j += lanes) {
            V element[rows];
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i) element[i] = load(d, elements + i * stride + j);
#pragma GCC unroll 4
            for (int v = 0; v < secret_vectors; ++v) {
                const V vector = load(d, p.vector + v * p.vector_stride + j);
#pragma GCC unroll 4
                for (int i = 0; i < rows; ++i) sum[i][v] = hn::MulAdd(element[i], vector, sum[i][v]);
            }
        }
        measured.add(elements, stride, rest, p);
    }
    for (int i = 0; i < rows; ++i) {
        const float* const one = elements + i * stride;
        for (int v = 0; v < secret_vectors; ++v) {
            double total = hn::GetLane(hn::SumOfLanes(d, sum[i][v]));
            for (int64_t j = rest; j < p.cols; ++j)
                total += static_cast<double>(one[j]) * p.vector[v * p.vector_stride + j];
            p.sum[v * p.sum_stride + row + i] += total;
        }
        p.measure[row + i] += measured.finish(i, one, rest, p);
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
void project_row(const double* elements, int64_t row, const Projection<double>& p) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    V high[secret_vectors], low[secret_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < secret_vectors; ++v) high[v] = low[v] = hn::Zero(d);
    Measured<rows_of, double, 1> measured;
    int64_t j = 0;
    for (; j + lanes <= p.cols; j += lanes) {
        const V element = load(d, elements + j);
#pragma GCC unroll 4
        for (int v = 0; v < secret_vectors; ++v) {
            add_exactly(element, load(d, p.vector + v * p.vector_stride + j), high[v], low[v]);
            if (p.vector_low != nullptr)
                low[v] = hn::MulAdd(element, load(d, p.vector_low + v * p.vector_stride + j), low[v]);
        }
        measured.add(elements, 0, j, p);
    }
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
    p.measure[row] += measured.finish(0, elements, j, p);
}

template <RowsOf rows_of>
void project_block(const float* elements, int64_t stride, const Projection<float>& p) {
    constexpr int at_once = HWY_MAX_BYTES >= 64 ? 4 : 2;  // as many as there are registers for
    int64_t row = 0;
    for (; row + at_once <= p.rows; row += at_once)
        project_rows<rows_of, at_once>(elements + row * stride, stride, row, p);
    for (; row < p.rows; ++row) project_rows<rows_of, 1>(elements + row * stride, stride, row, p);
}

template <RowsOf rows_of>
void project_block(const double* elements, int64_t stride, const Projection<double>& p) {
    for (int64_t row = 0; row < p.rows; ++row) project_row<rows_of>(elements + row * stride, row, p);
}

template <typename T>
void project_any(RowsOf rows_of, const T* elements, int64_t stride, const Projection<T>& p) {
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

void project_f32(RowsOf rows_of, const float* elements, int64_t stride, const Projection<float>& p) {
    project_any(rows_of, elements, stride, p);
}
void project_f64(RowsOf rows_of, const double* elements, int64_t stride, const Projection<double>& p) {
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

void project(RowsOf rows_of, const float* elements, int64_t stride, const Projection<float>& projection) {
    HWY_DYNAMIC_DISPATCH(project_f32)(rows_of, elements, stride, projection);
}
void project(RowsOf rows_of, const double* elements, int64_t stride, const Projection<double>& projection) {
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
