// Transposes square by square, each a cache line wide.
#include "core/tensor/transpose.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <type_traits>

namespace goblin {

namespace {

constexpr size_t cache_line_bytes = 64;

// One square of a transposition, a cache line wide; `whole` is known at compile time because that doubles the
// speed.
template <size_t element_bytes, bool whole>
void transpose_square(const std::byte* source, size_t source_stride, size_t rows, size_t cols,
                      std::byte* target, size_t target_stride) {
    constexpr size_t side = cache_line_bytes / element_bytes;
    if constexpr (whole) rows = cols = side;
    std::array<std::array<std::byte, cache_line_bytes>, side> columns;
    for (size_t col = 0; col < cols; ++col)
        std::memcpy(columns[col].data(), source + col * source_stride, rows * element_bytes);
    for (size_t row = 0; row < rows; ++row) {
        std::array<std::byte, cache_line_bytes> line;
        for (size_t col = 0; col < cols; ++col)
            std::memcpy(&line[col * element_bytes], &columns[col][row * element_bytes], element_bytes);
        std::memcpy(target + row * target_stride, line.data(), cols * element_bytes);
    }
}

// Cache lines are read and written whole: strides of a power of two would evict them before they are used up.
template <size_t element_bytes>
void transpose_elements(const std::byte* source, size_t rows, size_t cols, std::byte* target,
                        size_t target_stride) {
    constexpr size_t side = cache_line_bytes / element_bytes;
    const size_t source_stride = rows * element_bytes;
    for (size_t row = 0; row < rows; row += side)
        for (size_t col = 0; col < cols; col += side) {
            const std::byte* from = source + col * source_stride + row * element_bytes;
            std::byte* to = target + row * target_stride + col * element_bytes;
            if (row + side <= rows && col + side <= cols)
                transpose_square<element_bytes, true>(from, source_stride, side, side, to, target_stride);
            else
                transpose_square<element_bytes, false>(from, source_stride, std::min(side, rows - row),
                                                       std::min(side, cols - col), to, target_stride);
        }
}

}  // namespace

void transpose(size_t element_bytes, const std::byte* source, int64_t rows, int64_t cols, std::byte* target,
               int64_t target_cols) {
    const auto run = [&]<size_t bytes>(std::integral_constant<size_t, bytes>) {
        transpose_elements<bytes>(source, static_cast<size_t>(rows), static_cast<size_t>(cols), target,
                                  static_cast<size_t>(target_cols) * bytes);
    };
    switch (element_bytes) {
        case 1:
            return run(std::integral_constant<size_t, 1>());
        case 4:
            return run(std::integral_constant<size_t, 4>());
        default:
            assert(element_bytes == 8);
            return run(std::integral_constant<size_t, 8>());
    }
}

}  // namespace goblin
