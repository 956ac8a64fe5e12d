// MatrixSource: a matrix that is read block by block, so that it may be in memory, in a file, or cut out of
// either.
#pragma once

#include <cstdint>

#include "core/engine/cpu/workspace.hpp"
#include "core/tensor/block.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin {

// Row-major elements; the next row starts row_stride elements further on.
struct MatrixView {
    const void* elements = nullptr;
    int64_t row_stride = 0;
};

class MatrixSource {
  public:
    virtual ~MatrixSource() = default;

    DType dtype() const { return dtype_; }
    int64_t rows() const { return rows_; }
    int64_t cols() const { return cols_; }
    TensorSpec spec() const { return {dtype_, Shape{rows_, cols_}}; }

    // A block that lies within the matrix and isn't empty. The answer points into the source's own memory or
    // into `buffer`, and holds until the buffer is used again. Called from several threads at once, each with
    // its own buffer; throws goblin::Error when it cannot be read.
    virtual MatrixView view(const Block& block, Workspace& buffer) const = 0;

  protected:
    MatrixSource(DType dtype, int64_t rows, int64_t cols) : dtype_(dtype), rows_(rows), cols_(cols) {}

  private:
    DType dtype_;
    int64_t rows_;
    int64_t cols_;
};

// A matrix in memory, never copied. The memory must outlive the source and be aligned to the element's size.
class MemoryMatrix : public MatrixSource {
  public:
    MemoryMatrix(DType dtype, int64_t rows, int64_t cols, const void* elements, int64_t row_stride)
        : MatrixSource(dtype, rows, cols),
          elements_(static_cast<const std::byte*>(elements)),
          row_stride_(row_stride) {}
    // The whole of a tensor of two axes.
    explicit MemoryMatrix(const Tensor& tensor)
        : MemoryMatrix(tensor.dtype(), tensor.shape()[0], tensor.shape()[1], tensor.bytes().data(),
                       tensor.shape()[1]) {}

    MatrixView view(const Block& block, Workspace& buffer) const override;

  private:
    const std::byte* elements_;
    int64_t row_stride_;
};

}  // namespace goblin
