// NpyReader: parts of a .npy file, read straight into the caller's memory as row-major little-endian
// elements.
//
// Nothing is mapped and no more than a few MiB are buffered, so a large file doesn't count as resident
// memory. Whatever order the file has, whole rows, panels of columns and blocks are read with few calls.
// Big-endian elements are swapped, bool bytes other than 0 and 1 become 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/tensor/block.hpp"
#include "core/tensor/file.hpp"
#include "core/tensor/npy_header.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin {

// Reading is safe from several threads at once. All errors carry the path. A target must have exactly the
// size of what is read into it.
class NpyReader {
  public:
    // Throws ErrorKind::io when the file can't be opened, ErrorKind::input when it isn't a whole .npy file.
    // Bytes behind the array are ignored, as NumPy does.
    explicit NpyReader(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return file_.path(); }
    const TensorSpec& spec() const { return header_.spec; }
    const NpyHeader& header() const { return header_; }

    // The matrix that blocks are read of. An array of two axes is one from the start.
    bool is_matrix() const { return is_matrix_; }
    int64_t rows() const { return rows_; }
    int64_t cols() const { return cols_; }
    // Sees the array as rows × cols, in row-major order, as numpy.reshape does: a vector as a row or a
    // column, images as rows of pixels. Throws ErrorKind::input when the number of elements differs, or when
    // the array has Fortran order and other axes.
    void view_as_matrix(int64_t rows, int64_t cols);

    void read_block(const Block& block, std::span<std::byte> target) const;
    void read_rows(int64_t row, int64_t rows, std::span<std::byte> target) const;
    void read_columns(int64_t col, int64_t cols, std::span<std::byte> target) const;
    // The bytes offset_bytes … offset_bytes + target.size() − 1 of what read_block would give: a transfer
    // that is taken up again, or one leaf of a digest.
    void read_block_bytes(const Block& block, uint64_t offset_bytes, std::span<std::byte> target) const;
    // The whole array, whatever its rank.
    void read_all(std::span<std::byte> target) const;
    Tensor read_all() const;

    // Of the file as it was opened: keep it to notice later whether the same file is still there.
    const FileIdentity& identity() const { return identity_; }
    // Whether the path still leads to the file as it was opened.
    bool unchanged() const;

  private:
    // A rectangle of the file as it is stored: a line is what lies contiguous, a row in C order, a column in
    // Fortran order.
    struct Stored {
        int64_t line = 0;
        int64_t first = 0;
        int64_t lines = 0;
        int64_t length = 0;
    };
    size_t element_bytes() const { return size_of(spec().dtype); }
    bool lines_are_columns() const { return header_.order == NpyOrder::fortran && spec().shape.rank() > 1; }
    void require_within(const Block& block) const;
    void read_stored(const Stored& part, std::span<std::byte> target) const;
    void read_bytes_of_lines(const Stored& part, std::span<std::byte> target) const;
    void read_transposed(const Block& block, std::span<std::byte> target) const;
    void read_elements(const Block& block, int64_t first, int64_t count, std::span<std::byte> target) const;
    void read_all_axes_reversed(std::span<std::byte> target) const;

    File file_;
    FileIdentity identity_;
    NpyHeader header_;
    bool is_matrix_ = false;
    int64_t rows_ = 0;
    int64_t cols_ = 0;
};

}  // namespace goblin
