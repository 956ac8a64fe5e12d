// Matrices in memory.
#include "core/check/matrix_source.hpp"

#include <cassert>

namespace goblin {

MatrixView MemoryMatrix::view(const Block& block, Workspace&) const {
    assert(block.fits(rows(), cols()) && block.elements() > 0);
    const int64_t offset = block.row * row_stride_ + block.col;
    return {elements_ + static_cast<size_t>(offset) * size_of(dtype()), row_stride_};
}

}  // namespace goblin
