// A matrix product described over memory, without tensors: what the lab's tiles and the checks multiply.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.hpp"

namespace goblin {

// C = A · B for row-major A [rows, depth], B [depth, columns] and C [rows, columns]. A stride is the distance
// from a row to the next, in elements, at least the row's length. C must not overlap A or B.
struct ProductOperands {
    DType dtype = DType::f32;  // of A and B; C has product_dtype(dtype)
    int64_t rows = 0;
    int64_t depth = 0;
    int64_t columns = 0;
    const void* a = nullptr;
    int64_t a_stride = 0;
    const void* b = nullptr;
    int64_t b_stride = 0;
    void* c = nullptr;
    int64_t c_stride = 0;
};

// Throws ErrorKind::usage for lengths outside 0 … 2^40, strides below the row's length, or absent memory.
void expect_sound(const ProductOperands& operands);

}  // namespace goblin
