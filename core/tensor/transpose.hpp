// Transposing a matrix from one place in memory to another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace goblin {

// target[r][c] = source[c][r] for rows × cols elements of 1, 4 or 8 bytes. A row of the source has `rows`
// elements, one of the target target_cols ≥ cols, of which the first `cols` are written.
void transpose(size_t element_bytes, const std::byte* source, int64_t rows, int64_t cols, std::byte* target,
               int64_t target_cols);

}  // namespace goblin
