// Recomputes on the engine, chunk by chunk of the contract, so that memory stays bounded whatever K is.
#include "core/check/recompute.hpp"

#include <cmath>
#include <mutex>
#include <numeric>

namespace goblin {

namespace {

constexpr int64_t first_rows = 8;  // a liar's worst row convicts; more rows at once cost less for the honest
constexpr int64_t most_rows = 256;
constexpr int64_t panel_bytes = int64_t{16} << 20;
constexpr int64_t most_drawn = 32;
constexpr int64_t drawn_bytes = int64_t{32} << 20;

// Elements of C under construction: rows × cols of them, summed over the contract's chunks of k.
template <typename T>
class ChunkSums {
    using Out = ProductOf<T>;

  public:
    ChunkSums(const Tile& tile, int64_t rows, int64_t cols)
        : tile_(tile),
          rows_(rows),
          cols_(cols),
          chunk_(static_cast<size_t>(rows * cols)),
          sum_(chunk_.size()) {}

    // The next chunk's value is the product of these panels: a of [rows, depth], b of [depth, cols].
    void add_chunk(const TypedBlock<T>& a, const TypedBlock<T>& b) {
        assert(a.place.rows == rows_ && b.place.cols == cols_ && a.place.cols == b.place.rows);
        assert(a.place.cols <= product_chunk_length);
        RunControl control;
        control.stop = tile_.stop;
        tile_.engine.product({.dtype = dtype_of<T>(),
                              .rows = rows_,
                              .depth = a.place.cols,
                              .columns = cols_,
                              .a = a.elements,
                              .a_stride = a.stride,
                              .b = b.elements,
                              .b_stride = b.stride,
                              .c = chunk_.data(),
                              .c_stride = cols_},
                             control);
        for (size_t i = 0; i < sum_.size(); ++i) {
            if constexpr (std::is_floating_point_v<Out>)
                sum_[i] += chunk_[i];
            else
                sum_[i] = multiply_add(Out{1}, chunk_[i], sum_[i]);
        }
    }

    // The final bits of an element: chunks are never −0, so neither are their sums.
    uint64_t bits(int64_t row, int64_t col) const {
        const Out value = sum_[static_cast<size_t>(row * cols_ + col)];
        if constexpr (std::is_floating_point_v<Out>)
            if (std::isnan(value)) return bits_of(canonical_nan<Out>());
        return bits_of(value);
    }

  private:
    const Tile& tile_;
    int64_t rows_;
    int64_t cols_;
    std::vector<Out> chunk_;
    std::vector<Out> sum_;
};

// The first element of a block of C that differs from expected(row, col), both counted inside the block.
template <typename Out, typename Expected>
std::optional<ProductConviction> first_difference(const TypedBlock<Out>& c, Expected expected) {
    for (int64_t row = 0; row < c.place.rows; ++row)
        for (int64_t col = 0; col < c.place.cols; ++col) {
            const uint64_t right = expected(row, col);
            const uint64_t found = bits_of(c.at(row, col));
            if (right != found) return ProductConviction{c.place.row + row, c.place.col + col, right, found};
        }
    return std::nullopt;
}

// Calls work(k, depth) for each of the contract's chunks.
template <typename Work>
void for_each_chunk(int64_t k_end, Work work) {
    for (int64_t k = 0; k < k_end; k += product_chunk_length)
        work(k, std::min(product_chunk_length, k_end - k));
}

template <typename T>
std::optional<ProductConviction> recompute_row_group(const Tile& tile, std::span<const int64_t> rows) {
    const auto count = static_cast<int64_t>(rows.size());
    const int64_t deepest = std::min(product_chunk_length, tile.k());
    const int64_t strip = std::max<int64_t>(1, panel_bytes / (deepest * static_cast<int64_t>(sizeof(T))));
    std::vector<T> a_rows(static_cast<size_t>(count * deepest));
    Workspace& buffer = tile.threads.buffer(0);
    for (int64_t first_col = 0; first_col < tile.n(); first_col += strip) {
        const int64_t cols = std::min(strip, tile.n() - first_col);
        ChunkSums<T> sums(tile, count, cols);
        for_each_chunk(tile.k(), [&](int64_t k, int64_t depth) {
            for (int64_t i = 0; i < count; ++i) {
                const auto row = view_block<T>(tile.a, {rows[static_cast<size_t>(i)], k, 1, depth}, buffer);
                std::copy_n(row.elements, depth, a_rows.begin() + i * depth);
            }
            sums.add_chunk({{0, k, count, depth}, a_rows.data(), depth},
                           view_block<T>(tile.b, {k, first_col, depth, cols}, buffer));
        });
        for (int64_t i = 0; i < count; ++i) {
            const auto claimed =
                view_block<ProductOf<T>>(tile.c, {rows[static_cast<size_t>(i)], first_col, 1, cols}, buffer);
            if (auto found =
                    first_difference(claimed, [&](int64_t, int64_t col) { return sums.bits(i, col); }))
                return found;
        }
    }
    return std::nullopt;
}

// Columns of B side by side, [K, cols].
template <typename T>
std::vector<T> gather_columns(const Tile& tile, std::span<const int64_t> cols) {
    const auto count = static_cast<int64_t>(cols.size());
    std::vector<T> columns(static_cast<size_t>(tile.k() * count));
    tile.threads.for_each(count, tile.stop, [&](int64_t j, unsigned thread) {
        Workspace& buffer = tile.threads.buffer(thread);
        for_each_chunk(tile.k(), [&](int64_t k, int64_t depth) {
            const auto column = view_block<T>(tile.b, {k, cols[static_cast<size_t>(j)], depth, 1}, buffer);
            for (int64_t i = 0; i < depth; ++i)
                columns[static_cast<size_t>((k + i) * count + j)] = column.at(i, 0);
        });
    });
    return columns;
}

template <typename T>
std::optional<ProductConviction> recompute_column_group(const Tile& tile, std::span<const int64_t> cols) {
    const auto count = static_cast<int64_t>(cols.size());
    const std::vector<T> b = gather_columns<T>(tile, cols);
    Workspace& buffer = tile.threads.buffer(0);
    for (int64_t row = 0; row < tile.m(); row += most_rows) {
        const int64_t rows = std::min(most_rows, tile.m() - row);
        ChunkSums<T> sums(tile, rows, count);
        for_each_chunk(tile.k(), [&](int64_t k, int64_t depth) {
            sums.add_chunk(view_block<T>(tile.a, {row, k, rows, depth}, buffer),
                           {{k, 0, depth, count}, b.data() + k * count, count});
        });
        for (int64_t j = 0; j < count; ++j) {
            const auto claimed =
                view_block<ProductOf<T>>(tile.c, {row, cols[static_cast<size_t>(j)], rows, 1}, buffer);
            if (auto found = first_difference(claimed, [&](int64_t i, int64_t) { return sums.bits(i, j); }))
                return found;
        }
    }
    return std::nullopt;
}

// The conviction of the lowest item that has one; items above it need not be looked at.
class LowestConviction {
  public:
    void found(int64_t item, const std::optional<ProductConviction>& conviction) {
        if (!conviction) return;
        const std::lock_guard lock(mutex_);
        if (conviction_ && item >= item_) return;
        item_ = item;
        conviction_ = conviction;
    }
    const std::optional<ProductConviction>& get() const { return conviction_; }

  private:
    std::mutex mutex_;
    int64_t item_ = 0;
    std::optional<ProductConviction> conviction_;
};

}  // namespace

template <typename T>
std::optional<ProductConviction> recompute_rows(const Tile& tile, std::span<const int64_t> rows) {
    size_t group = first_rows;
    for (size_t done = 0; done < rows.size();) {
        const size_t count = std::min(group, rows.size() - done);
        if (auto found = recompute_row_group<T>(tile, rows.subspan(done, count))) return found;
        done += count;
        group = std::min<size_t>(group * 4, most_rows);
    }
    return std::nullopt;
}

template <typename T>
std::optional<ProductConviction> recompute_columns(const Tile& tile, std::span<const int64_t> cols) {
    const int64_t fit = panel_bytes / (tile.k() * static_cast<int64_t>(sizeof(T)));
    const auto group = static_cast<size_t>(std::clamp<int64_t>(fit, 1, most_rows));
    for (size_t done = 0; done < cols.size(); done += group)
        if (auto found =
                recompute_column_group<T>(tile, cols.subspan(done, std::min(group, cols.size() - done))))
            return found;
    return std::nullopt;
}

template <typename T>
std::optional<ProductConviction> expect_rows(const Tile& tile, std::span<const int64_t> rows, uint64_t bits) {
    LowestConviction lowest;
    tile.threads.for_each(static_cast<int64_t>(rows.size()), tile.stop, [&](int64_t item, unsigned thread) {
        Workspace& buffer = tile.threads.buffer(thread);
        const auto claimed =
            view_block<ProductOf<T>>(tile.c, {rows[static_cast<size_t>(item)], 0, 1, tile.n()}, buffer);
        lowest.found(item, first_difference(claimed, [&](int64_t, int64_t) { return bits; }));
    });
    return lowest.get();
}

template <typename T>
std::optional<ProductConviction> expect_columns(const Tile& tile, std::span<const int64_t> cols,
                                                uint64_t bits) {
    LowestConviction lowest;
    tile.threads.for_each(static_cast<int64_t>(cols.size()), tile.stop, [&](int64_t item, unsigned thread) {
        Workspace& buffer = tile.threads.buffer(thread);
        const auto claimed =
            view_block<ProductOf<T>>(tile.c, {0, cols[static_cast<size_t>(item)], tile.m(), 1}, buffer);
        lowest.found(item, first_difference(claimed, [&](int64_t, int64_t) { return bits; }));
    });
    return lowest.get();
}

template <typename T>
DrawnElements<T>::DrawnElements(const Tile& tile, SecretDraws& draws) : tile_(tile) {
    const int64_t fit = drawn_bytes / (tile.k() * static_cast<int64_t>(sizeof(T)));
    const int64_t count = std::clamp<int64_t>(fit, 1, most_drawn);
    for (int64_t i = 0; i < count; ++i)
        places_.push_back({static_cast<int64_t>(draws.below(static_cast<uint64_t>(tile.m()))),
                           static_cast<int64_t>(draws.below(static_cast<uint64_t>(tile.n())))});
    columns_.resize(static_cast<size_t>(count * tile.k()));
}

template <typename T>
void DrawnElements<T>::collect(const TypedBlock<T>& b) {
    for (size_t drawn = 0; drawn < places_.size(); ++drawn) {
        const int64_t col = places_[drawn].col - b.place.col;
        if (col < 0 || col >= b.place.cols) continue;
        T* column = columns_.data() + static_cast<int64_t>(drawn) * tile_.k() + b.place.row;
        for (int64_t i = 0; i < b.place.rows; ++i) column[i] = b.at(i, col);
    }
}

template <typename T>
std::optional<ProductConviction> DrawnElements<T>::recompute() const {
    LowestConviction lowest;
    tile_.threads.for_each(count(), tile_.stop, [&](int64_t item, unsigned thread) {
        Workspace& buffer = tile_.threads.buffer(thread);
        const Place place = places_[static_cast<size_t>(item)];
        const T* column = columns_.data() + item * tile_.k();
        ProductChain<T> chain;
        for_each_chunk(tile_.k(), [&](int64_t k, int64_t depth) {
            const auto a = view_block<T>(tile_.a, {place.row, k, 1, depth}, buffer);
            chain.add_chunk({a.elements, 1}, {column + k, 1}, depth);
        });
        const uint64_t right = bits_of(chain.finish());
        const auto claimed = view_block<ProductOf<T>>(tile_.c, {place.row, place.col, 1, 1}, buffer);
        lowest.found(item, first_difference(claimed, [&](int64_t, int64_t) { return right; }));
    });
    return lowest.get();
}

#define GOBLIN_RECOMPUTE(T)                                                                                \
    template std::optional<ProductConviction> recompute_rows<T>(const Tile&, std::span<const int64_t>);    \
    template std::optional<ProductConviction> recompute_columns<T>(const Tile&, std::span<const int64_t>); \
    template std::optional<ProductConviction> expect_rows<T>(const Tile&, std::span<const int64_t>,        \
                                                             uint64_t);                                    \
    template std::optional<ProductConviction> expect_columns<T>(const Tile&, std::span<const int64_t>,     \
                                                                uint64_t);                                 \
    template class DrawnElements<T>;
GOBLIN_RECOMPUTE(float)
GOBLIN_RECOMPUTE(double)
GOBLIN_RECOMPUTE(int8_t)
GOBLIN_RECOMPUTE(uint8_t)
GOBLIN_RECOMPUTE(int32_t)
GOBLIN_RECOMPUTE(int64_t)
#undef GOBLIN_RECOMPUTE

}  // namespace goblin
