// Projections of matrix rows on the secret vectors of a float check: what costs time in it, vectorised.
#pragma once

#include <cstdint>

namespace goblin {

inline constexpr int secret_vectors = 4;

// Which matrix a row belongs to decides what is found out beside its projections.
enum class RowsOf {
    b,  // measure += Σ_j (b_kj · weight_j)², and column_norm2_j += Σ_k of the same
    a,  // measure += Σ_k |a_ik| · weight_k
    c,  // measure += 1 where the row holds a −0, which no product is
};

// For `rows` rows of a block: sum[v·sum_stride + i] += Σ_j element_ij · vector[v·vector_stride + j].
// f32 operands are summed in f64. f64 operands are summed as if with 106 bits (Ogita, Rump, Oishi 2005,
// algorithm 5.3): products and sums carry their rounding errors along, in sum_low, and the vectors may have a
// low part, too. Measures decide no more than how tight the check is, and are taken in the operands' own
// precision.
template <typename T>
struct Projection {
    int64_t rows = 0;
    int64_t cols = 0;
    const double* vector = nullptr;
    const double* vector_low = nullptr;  // f64 alone; null: zeros
    int64_t vector_stride = 0;
    const T* weight = nullptr;  // not for RowsOf::c
    double* sum = nullptr;
    double* sum_low = nullptr;  // f64 alone
    int64_t sum_stride = 0;
    double* measure = nullptr;
    T* column_norm2 = nullptr;  // for RowsOf::b alone
};
void project(RowsOf rows_of, const float* elements, int64_t stride, const Projection<float>& projection);
void project(RowsOf rows_of, const double* elements, int64_t stride, const Projection<double>& projection);

// norm2[j] += Σ_i element_ij², largest[j] = max(largest[j], |element_ij|); a NaN shows in norm2, an infinity
// in both.
void measure_columns(const float* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                     double* largest);
void measure_columns(const double* elements, int64_t stride, int64_t rows, int64_t cols, double* norm2,
                     double* largest);

}  // namespace goblin
