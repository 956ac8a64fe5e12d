// Plans few large reads for any part of a matrix, and turns stored elements into row-major little-endian
// ones.
#include "core/tensor/npy_reader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/tensor/transpose.hpp"

namespace goblin {

namespace {

// What one call takes at most beside the caller's memory: one buffer for gaps, one for elements to transpose,
// and one for the rows around a range of bytes.
constexpr size_t gap_buffer_bytes = size_t{1} << 20;
constexpr size_t transpose_buffer_bytes = size_t{1} << 20;
constexpr size_t surrounding_rows_bytes = size_t{4} << 20;
// Skipping fewer bytes than this with a read of its own takes longer than reading through them.
constexpr size_t gap_worth_skipping_bytes = size_t{8} << 10;
// Columns transposed together: the runs read and written are then a KiB and more, and the pages touched few
// enough for the processor to keep their addresses at hand.
constexpr int64_t transposed_columns = 256;

std::unique_ptr<std::byte[]> buffer_of(size_t size_bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(size_bytes);
}

template <typename Word, Word (*swapped)(Word)>
void swap_words(std::span<std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
        Word word;
        std::memcpy(&word, &bytes[at], sizeof word);
        word = swapped(word);
        std::memcpy(&bytes[at], &word, sizeof word);
    }
}
uint32_t swapped_32(uint32_t word) {
    return __builtin_bswap32(word);
}
uint64_t swapped_64(uint64_t word) {
    return __builtin_bswap64(word);
}

// What the file stores becomes what the contract computes with.
void make_native(const NpyHeader& header, std::span<std::byte> bytes) {
    if (header.spec.dtype == DType::boolean)
        for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
    if (!header.big_endian) return;
    if (size_of(header.spec.dtype) == 4)
        swap_words<uint32_t, swapped_32>(bytes);
    else
        swap_words<uint64_t, swapped_64>(bytes);
}

NpyHeader header_of(const File& file, uint64_t size_bytes) {
    std::vector<std::byte> start(std::min<uint64_t>(size_bytes, npy_max_header_bytes));
    file.read_at(0, start);
    NpyHeader header;
    try {
        header = parse_npy_header(start);
    } catch (const Error& error) {
        throw Error(error.kind(), "{}: {}", file.path().string(), error.what());
    }
    if (size_bytes < header.file_size_bytes())
        throw Error(ErrorKind::input,
                    "{}: expected {} bytes for {}, found {}, {} too few; copy or save it again",
                    file.path().string(), header.file_size_bytes(), header.spec.text(), size_bytes,
                    header.file_size_bytes() - size_bytes);
    return header;
}

void require_size(size_t expected_bytes, std::span<std::byte> target) {
    assert(target.size() == expected_bytes && "the target is as large as what is read into it");
    if (target.size() != expected_bytes)
        throw Error(ErrorKind::usage, "expected memory for {} bytes to read, found {}", expected_bytes,
                    target.size());
}

}  // namespace

NpyReader::NpyReader(const std::filesystem::path& path)
    : file_(File::open_to_read(path)),
      identity_(file_.identity()),
      header_(header_of(file_, identity_.size_bytes)),
      is_matrix_(spec().shape.rank() == 2) {
    if (!is_matrix_) return;
    rows_ = spec().shape[0];
    cols_ = spec().shape[1];
}

void NpyReader::view_as_matrix(int64_t rows, int64_t cols) {
    const Shape& shape = spec().shape;
    const Shape matrix{rows, cols};
    if (lines_are_columns() && shape != matrix)
        throw Error(
            ErrorKind::input,
            "{}: expected C order to see {} as {}, found Fortran order; save numpy.ascontiguousarray(a)",
            path().string(), spec().text(), matrix.text());
    if (matrix.elements() != shape.elements())
        throw Error(ErrorKind::input,
                    "{}: expected {} elements for a matrix {}, found {} in {}; save it in that shape",
                    path().string(), matrix.elements(), matrix.text(), shape.elements(), spec().text());
    is_matrix_ = true;
    rows_ = rows;
    cols_ = cols;
}

void NpyReader::require_within(const Block& block) const {
    if (!is_matrix_)
        throw Error(ErrorKind::input, "{}: expected a matrix, found {}; reshape it to two axes",
                    path().string(), spec().text());
    if (!block.fits(rows_, cols_))
        throw Error(ErrorKind::usage,
                    "{}: expected a block within [{}, {}], found {} × {} at row {}, column {}",
                    path().string(), rows_, cols_, block.rows, block.cols, block.row, block.col);
}

void NpyReader::read_block(const Block& block, std::span<std::byte> target) const {
    require_within(block);
    require_size(static_cast<size_t>(block.elements()) * element_bytes(), target);
    if (target.empty()) return;
    if (lines_are_columns())
        read_transposed(block, target);
    else
        read_stored({block.row, block.col, block.rows, block.cols}, target);
}

void NpyReader::read_rows(int64_t row, int64_t rows, std::span<std::byte> target) const {
    read_block({row, 0, rows, cols_}, target);
}

void NpyReader::read_columns(int64_t col, int64_t cols, std::span<std::byte> target) const {
    read_block({0, col, rows_, cols}, target);
}

void NpyReader::read_stored(const Stored& part, std::span<std::byte> target) const {
    read_bytes_of_lines(part, target);
    make_native(header_, target);
}

void NpyReader::read_bytes_of_lines(const Stored& part, std::span<std::byte> target) const {
    const auto line_bytes = static_cast<uint64_t>(lines_are_columns() ? rows_ : cols_) * element_bytes();
    const auto piece_bytes = static_cast<size_t>(part.length) * element_bytes();
    const auto lines = static_cast<uint64_t>(part.lines);
    assert(target.size() == lines * piece_bytes);
    uint64_t from = header_.data_offset_bytes + static_cast<uint64_t>(part.line) * line_bytes +
                    static_cast<uint64_t>(part.first) * element_bytes();
    if (piece_bytes == line_bytes || lines == 1) return file_.read_at(from, target);

    if (line_bytes - piece_bytes >= gap_worth_skipping_bytes || line_bytes > gap_buffer_bytes) {
        for (uint64_t line = 0; line < lines; ++line, from += line_bytes)
            file_.read_at(from, target.subspan(line * piece_bytes, piece_bytes));
        return;
    }
    const uint64_t lines_at_once = std::min(lines, gap_buffer_bytes / line_bytes);
    const auto buffer = buffer_of(lines_at_once * line_bytes);
    for (uint64_t line = 0; line < lines; line += lines_at_once, from += lines_at_once * line_bytes) {
        const uint64_t now = std::min(lines_at_once, lines - line);
        file_.read_at(from, {buffer.get(), (now - 1) * line_bytes + piece_bytes});
        for (uint64_t i = 0; i < now; ++i)
            std::memcpy(&target[(line + i) * piece_bytes], &buffer[i * line_bytes], piece_bytes);
    }
}

void NpyReader::read_transposed(const Block& block, std::span<std::byte> target) const {
    const auto buffer_elements = static_cast<int64_t>(transpose_buffer_bytes / element_bytes());
    // All rows of as many columns as fit; of a long column only a part.
    const int64_t rows_at_once =
        std::min(block.rows, buffer_elements / std::min(block.cols, transposed_columns));
    const int64_t cols_at_once = std::min(block.cols, buffer_elements / rows_at_once);
    const auto buffer = buffer_of(static_cast<size_t>(rows_at_once * cols_at_once) * element_bytes());
    for (int64_t row = 0; row < block.rows; row += rows_at_once)
        for (int64_t col = 0; col < block.cols; col += cols_at_once) {
            const int64_t rows = std::min(rows_at_once, block.rows - row);
            const int64_t cols = std::min(cols_at_once, block.cols - col);
            read_stored({block.col + col, block.row + row, cols, rows},
                        {buffer.get(), static_cast<size_t>(rows * cols) * element_bytes()});
            transpose(element_bytes(), buffer.get(), rows, cols,
                      &target[static_cast<size_t>(row * block.cols + col) * element_bytes()], block.cols);
        }
}

void NpyReader::read_block_bytes(const Block& block, uint64_t offset_bytes,
                                 std::span<std::byte> target) const {
    require_within(block);
    const uint64_t block_bytes = static_cast<uint64_t>(block.elements()) * element_bytes();
    if (offset_bytes > block_bytes || target.size() > block_bytes - offset_bytes)
        throw Error(ErrorKind::usage,
                    "{}: expected a range within the {} bytes of a block, found {} bytes at {}",
                    path().string(), block_bytes, target.size(), offset_bytes);
    const auto take_of_one_element = [&](size_t skipped_bytes) {
        std::array<std::byte, 8> element{};
        read_elements(block, static_cast<int64_t>(offset_bytes / element_bytes()), 1,
                      {element.data(), element_bytes()});
        const size_t taken_bytes = std::min(element_bytes() - skipped_bytes, target.size());
        std::memcpy(target.data(), &element[skipped_bytes], taken_bytes);
        offset_bytes += taken_bytes;
        target = target.subspan(taken_bytes);
    };
    if (!target.empty() && offset_bytes % element_bytes() != 0)
        take_of_one_element(offset_bytes % element_bytes());
    if (const size_t whole_bytes = target.size() / element_bytes() * element_bytes(); whole_bytes > 0) {
        read_elements(block, static_cast<int64_t>(offset_bytes / element_bytes()),
                      static_cast<int64_t>(whole_bytes / element_bytes()), target.first(whole_bytes));
        offset_bytes += whole_bytes;
        target = target.subspan(whole_bytes);
    }
    if (!target.empty()) take_of_one_element(0);
}

// `count` elements of the block in row-major order, from number `first` on: the end of a row, whole rows, the
// beginning of a row.
void NpyReader::read_elements(const Block& block, int64_t first, int64_t count,
                              std::span<std::byte> target) const {
    assert(count > 0 && first + count <= block.elements());
    const int64_t first_row = first / block.cols;
    const int64_t rows = (first + count - 1) / block.cols - first_row + 1;
    const auto rows_bytes = static_cast<size_t>(rows * block.cols) * element_bytes();
    // Columns are cheaper to read once for all rows than again for each of the three parts.
    if (lines_are_columns() && rows > 1 && rows_bytes != target.size() &&
        rows_bytes <= surrounding_rows_bytes) {
        const auto buffer = buffer_of(rows_bytes);
        read_block({block.row + first_row, block.col, rows, block.cols}, {buffer.get(), rows_bytes});
        std::memcpy(target.data(), &buffer[static_cast<size_t>(first % block.cols) * element_bytes()],
                    target.size());
        return;
    }
    while (count > 0) {
        const int64_t col = first % block.cols;
        const bool whole_rows = col == 0 && count >= block.cols;
        const Block part{block.row + first / block.cols, block.col + col, whole_rows ? count / block.cols : 1,
                         whole_rows ? block.cols : std::min(count, block.cols - col)};
        const auto part_bytes = static_cast<size_t>(part.elements()) * element_bytes();
        read_block(part, target.first(part_bytes));
        target = target.subspan(part_bytes);
        first += part.elements();
        count -= part.elements();
    }
}

void NpyReader::read_all(std::span<std::byte> target) const {
    require_size(spec().size_bytes(), target);
    if (target.empty()) return;
    if (lines_are_columns()) return read_all_axes_reversed(target);
    file_.read_at(header_.data_offset_bytes, target);
    make_native(header_, target);
}

Tensor NpyReader::read_all() const {
    Tensor tensor(spec());
    read_all(tensor.bytes());
    return tensor;
}

// Fortran order of any rank: the file is read from end to end, in runs along the first axis.
void NpyReader::read_all_axes_reversed(std::span<std::byte> target) const {
    const Shape& shape = spec().shape;
    if (shape.rank() == 2) return read_transposed({0, 0, shape[0], shape[1]}, target);
    std::array<int64_t, max_rank> strides{};  // of the target, in elements
    int64_t stride = 1;
    for (size_t axis = shape.rank(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
    std::array<int64_t, max_rank> index{};
    int64_t place = 0;
    const auto buffer_elements = static_cast<int64_t>(transpose_buffer_bytes / element_bytes());
    const auto buffer =
        buffer_of(static_cast<size_t>(std::min(buffer_elements, shape.elements())) * element_bytes());
    for (int64_t done = 0; done < shape.elements(); done += buffer_elements) {
        const int64_t now = std::min(buffer_elements, shape.elements() - done);
        const std::span<std::byte> elements{buffer.get(), static_cast<size_t>(now) * element_bytes()};
        file_.read_at(header_.data_offset_bytes + static_cast<uint64_t>(done) * element_bytes(), elements);
        make_native(header_, elements);
        for (int64_t i = 0; i < now; ++i) {
            std::memcpy(&target[static_cast<size_t>(place) * element_bytes()],
                        &elements[static_cast<size_t>(i) * element_bytes()], element_bytes());
            for (size_t axis = 0; axis < shape.rank(); ++axis) {
                place += strides[axis];
                if (++index[axis] < shape[axis]) break;
                place -= index[axis] * strides[axis];
                index[axis] = 0;
            }
        }
    }
}

bool NpyReader::unchanged() const {
    return identity_of(path()) == identity_;
}

}  // namespace goblin
