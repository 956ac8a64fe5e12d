// Block: a rectangle of a matrix.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace goblin {

// Rows row … row + rows − 1, columns col … col + cols − 1.
struct Block {
    int64_t row = 0;
    int64_t col = 0;
    int64_t rows = 0;
    int64_t cols = 0;

    int64_t elements() const { return rows * cols; }
    // Lies within a matrix of that size; false for negative numbers, too. Nothing overflows.
    bool fits(int64_t matrix_rows, int64_t matrix_cols) const {
        return row >= 0 && col >= 0 && rows >= 0 && cols >= 0 && row <= matrix_rows && col <= matrix_cols &&
               rows <= matrix_rows - row && cols <= matrix_cols - col;
    }
    friend auto operator<=>(const Block&, const Block&) = default;
};

}  // namespace goblin
