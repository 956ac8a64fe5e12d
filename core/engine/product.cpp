// Checks a described product before anybody follows its pointers.
#include "core/engine/product.hpp"

#include <algorithm>

#include "core/arithmetic/product.hpp"
#include "core/error.hpp"
#include "core/tensor/shape.hpp"

namespace goblin {

namespace {

void expect_matrix(const char* name, const void* memory, int64_t rows, int64_t columns, int64_t stride) {
    if (std::min(rows, columns) < 0 || std::max(rows, columns) > max_elements)
        throw Error(ErrorKind::usage, "expected {} with lengths from 0 to 2^40, found [{}, {}]", name, rows,
                    columns);
    if (rows > 1 && stride < columns)
        throw Error(ErrorKind::usage, "expected a row stride of at least {} for {}, found {}", columns, name,
                    stride);
    if (rows > 0 && columns > 0 && memory == nullptr)
        throw Error(ErrorKind::usage, "expected memory for {} [{}, {}], found none", name, rows, columns);
}

}  // namespace

void expect_sound(const ProductOperands& operands) {
    product_dtype(operands.dtype);
    expect_matrix("the left operand", operands.a, operands.rows, operands.depth, operands.a_stride);
    expect_matrix("the right operand", operands.b, operands.depth, operands.columns, operands.b_stride);
    expect_matrix("the result", operands.c, operands.rows, operands.columns, operands.c_stride);
}

}  // namespace goblin
