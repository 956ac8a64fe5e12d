// The tile under check, and how its parts walk over the three matrices with several threads and bounded
// memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/arithmetic/product.hpp"
#include "core/check/matrix_source.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/cpu/thread_pool.hpp"

namespace goblin {

inline constexpr int64_t check_block_bytes = int64_t{1} << 20;

constexpr int64_t pieces_of(int64_t length, int64_t piece) {
    return (length + piece - 1) / piece;
}

// The threads of a check: a pool, a buffer for each of its threads, and exceptions that find their way back.
class CheckThreads {
  public:
    using Body = std::function<void(int64_t item, unsigned thread)>;

    explicit CheckThreads(unsigned threads) : pool_(threads), buffers_(threads) {}

    // body(item, thread) for every item below `count`, until one throws or `stop` is requested; then the
    // exception, or ErrorKind::cancelled, is thrown here. One call at a time.
    void for_each(int64_t count, const std::stop_token& stop, const Body& body);
    // Thread 0's is also for work between two calls of for_each.
    Workspace& buffer(unsigned thread) { return buffers_[thread]; }
    unsigned count() const { return pool_.threads(); }

  private:
    ThreadPool pool_;
    std::vector<Workspace> buffers_;
};

struct Tile {
    const MatrixSource& a;
    const MatrixSource& b;
    const MatrixSource& c;
    CheckThreads& threads;
    CpuEngine& engine;
    std::stop_token stop;

    int64_t m() const { return c.rows(); }
    int64_t k() const { return a.cols(); }
    int64_t n() const { return c.cols(); }
};

// A block of a matrix with elements of a known type.
template <typename T>
struct TypedBlock {
    Block place;
    const T* elements = nullptr;
    int64_t stride = 0;

    const T& at(int64_t row, int64_t col) const {
        assert(row < place.rows && col < place.cols);
        return elements[row * stride + col];
    }
};

template <typename T>
TypedBlock<T> view_block(const MatrixSource& matrix, const Block& block, Workspace& buffer) {
    assert(matrix.dtype() == dtype_of<T>());
    const MatrixView view = matrix.view(block, buffer);
    return {block, static_cast<const T*>(view.elements), view.row_stride};
}

// visit(block, thread) for blocks that cover the matrix; the blocks of a band of rows come from left to right
// on one thread.
template <typename T, typename Visit>
void for_each_row_band(const Tile& tile, const MatrixSource& matrix, Visit visit) {
    constexpr int64_t fit = check_block_bytes / static_cast<int64_t>(sizeof(T));
    constexpr int64_t fewest_rows = 4;
    const int64_t cols = std::min(matrix.cols(), fit / fewest_rows);
    const int64_t rows = std::clamp<int64_t>(fit / cols / fewest_rows * fewest_rows, fewest_rows, 256);
    tile.threads.for_each(pieces_of(matrix.rows(), rows), tile.stop, [&](int64_t band, unsigned thread) {
        const int64_t row = band * rows;
        for (int64_t col = 0; col < matrix.cols(); col += cols)
            visit(view_block<T>(
                      matrix,
                      {row, col, std::min(rows, matrix.rows() - row), std::min(cols, matrix.cols() - col)},
                      tile.threads.buffer(thread)),
                  thread);
    });
}

// visit(block) likewise; the blocks of a strip of so many columns come from top to bottom on one thread.
template <typename T, typename Visit>
void for_each_column_strip(const Tile& tile, const MatrixSource& matrix, int64_t cols, Visit visit) {
    constexpr int64_t fit = check_block_bytes / static_cast<int64_t>(sizeof(T));
    const int64_t rows = std::max<int64_t>(4, fit / std::min(cols, matrix.cols()) / 4 * 4);
    tile.threads.for_each(pieces_of(matrix.cols(), cols), tile.stop, [&](int64_t strip, unsigned thread) {
        const int64_t col = strip * cols;
        for (int64_t row = 0; row < matrix.rows(); row += rows)
            visit(view_block<T>(
                matrix, {row, col, std::min(rows, matrix.rows() - row), std::min(cols, matrix.cols() - col)},
                tile.threads.buffer(thread)));
    });
}

}  // namespace goblin
