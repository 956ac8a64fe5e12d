// A large product cut into blocks that fit the caches, shared out over threads.
//
//   for each block of columns                          (B's block is packed once for all rows)
//     for each chunk of k                              (the contract's chunks: C gets one addition for each)
//       pack B
//       for each block of rows
//         pack A
//         for each unit: for each panel_depth of k: for each panel of B: for each panel of A: multiply a tile
//                        for each tile: store into C
//
// A unit carries its chains through a whole chunk in tiles of its own, so C is touched once a chunk.
#include "core/engine/cpu/blocked_product.hpp"

#include <algorithm>
#include <cassert>

#include "core/arithmetic/product.hpp"
#include "core/engine/run_nodes.hpp"

namespace goblin {

namespace {

constexpr int64_t max_packed_a_bytes = int64_t{16} << 20;
constexpr int64_t max_packed_b_bytes = int64_t{32} << 20;
constexpr int64_t max_unit_rows = 120;
constexpr int64_t panel_bytes = 24 << 10;
constexpr int64_t unit_columns_bytes = 2 << 10;
// Below this much work a unit isn't worth waking a thread for.
constexpr int64_t min_unit_flops = int64_t{2} << 20;
constexpr int64_t units_per_thread = 6;
constexpr int64_t pack_item_elements = 64 << 10;

constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
    return (value + divisor - 1) / divisor;
}
constexpr int64_t round_up(int64_t value, int64_t multiple) {
    return ceil_div(value, multiple) * multiple;
}

// The parts of the workspace; the last is there once for each thread.
struct Sizes {
    Sizes(const ProductBlocking& blocking, const ProductKernel& kernel)
        : packed_a_bytes(aligned(blocking.block_rows * blocking.block_depth * kernel.packed_element_bytes)),
          packed_b_bytes(
              aligned(blocking.block_columns * blocking.block_depth * kernel.packed_element_bytes)),
          tiles_bytes(aligned(blocking.unit_rows * blocking.unit_columns * kernel.result_element_bytes)) {}

    static int64_t aligned(int64_t bytes) { return round_up(bytes, Workspace::alignment_bytes); }

    int64_t packed_a_bytes;
    int64_t packed_b_bytes;
    int64_t tiles_bytes;
};

// The length of equal parts of `length`, each a multiple and about `most` long, at least one multiple.
int64_t even_part(int64_t length, int64_t most, int64_t multiple) {
    const int64_t largest = std::max(multiple, most / multiple * multiple);
    const int64_t parts = std::max<int64_t>(1, ceil_div(length, largest));
    return std::max(multiple, round_up(ceil_div(length, parts), multiple));
}

class BlockedProduct {
  public:
    BlockedProduct(const ProductOperands& operands, const ProductKernel& kernel,
                   const ProductBlocking& blocking, ThreadPool& pool, std::byte* workspace,
                   const RunControl& control)
        : p_(operands),
          kernel_(kernel),
          blocking_(blocking),
          pool_(pool),
          control_(control),
          sizes_(blocking, kernel),
          packed_a_(workspace),
          packed_b_(packed_a_ + sizes_.packed_a_bytes),
          tiles_(packed_b_ + sizes_.packed_b_bytes) {}

    void run() {
        for (int64_t j = 0; j < p_.columns; j += blocking_.block_columns)
            for (int64_t k = 0; k < std::max<int64_t>(p_.depth, 1); k += product_chunk_length) {
                columns_ = {j, std::min(blocking_.block_columns, p_.columns - j)};
                depth_ = {k, std::min(product_chunk_length, p_.depth - k)};
                pack_b();
                for (int64_t i = 0; i < p_.rows; i += blocking_.block_rows) {
                    rows_ = {i, std::min(blocking_.block_rows, p_.rows - i)};
                    pack_a();
                    multiply();
                }
            }
    }

  private:
    struct Range {
        int64_t first = 0;
        int64_t length = 0;
    };

    const std::byte* a_at(int64_t row, int64_t k) const {
        return static_cast<const std::byte*>(p_.a) + (row * p_.a_stride + k) * operand_bytes();
    }
    const std::byte* b_at(int64_t k, int64_t column) const {
        return static_cast<const std::byte*>(p_.b) + (k * p_.b_stride + column) * operand_bytes();
    }
    std::byte* c_at(int64_t row, int64_t column) const {
        return static_cast<std::byte*>(p_.c) + (row * p_.c_stride + column) * kernel_.result_element_bytes;
    }
    int64_t operand_bytes() const { return static_cast<int64_t>(size_of(p_.dtype)); }

    // k from the chunk's start, in steps of panel_depth; the last step is filled up to the kernel's group.
    int64_t step_count() const { return ceil_div(depth_.length, blocking_.panel_depth); }
    Range step(int64_t index) const {
        const int64_t first = index * blocking_.panel_depth;
        return {first, std::min(blocking_.panel_depth, depth_.length - first)};
    }
    int64_t padded(const Range& step) const { return round_up(step.length, kernel_.depth_group); }

    // A packed block is laid out step by step, a step panel by panel.
    std::byte* a_panel(const Range& step, int64_t panel) const {
        const int64_t rows = round_up(rows_.length, kernel_.tile_rows);
        return packed_a_ +
               (step.first * rows + panel * kernel_.tile_rows * padded(step)) * kernel_.packed_element_bytes;
    }
    std::byte* b_panel(const Range& step, int64_t panel) const {
        const int64_t columns = round_up(columns_.length, kernel_.tile_columns);
        return packed_b_ + (step.first * columns + panel * kernel_.tile_columns * padded(step)) *
                               kernel_.packed_element_bytes;
    }

    // An item is one panel over the whole chunk, so that A's rows are read from one end to the other.
    void pack_a() {
        const int64_t panels = ceil_div(rows_.length, kernel_.tile_rows);
        pool_.for_each(panels, [&](int64_t panel, unsigned) noexcept {
            if (control_.stop.stop_requested()) return;
            const int64_t row = panel * kernel_.tile_rows;
            for (int64_t index = 0; index < step_count(); ++index) {
                const Range k = step(index);
                kernel_.pack_a(a_at(rows_.first + row, depth_.first + k.first), p_.a_stride,
                               std::min(kernel_.tile_rows, rows_.length - row), k.length, a_panel(k, panel));
            }
        });
        expect_not_stopped(control_);
    }

    void pack_b() {
        const int64_t panels = ceil_div(columns_.length, kernel_.tile_columns);
        const int64_t group =
            std::max<int64_t>(1, pack_item_elements / (kernel_.tile_columns * blocking_.panel_depth));
        const int64_t groups = ceil_div(panels, group);
        pool_.for_each(step_count() * groups, [&](int64_t item, unsigned) noexcept {
            if (control_.stop.stop_requested()) return;
            const Range k = step(item / groups);
            const int64_t first_panel = item % groups * group;
            const int64_t column = first_panel * kernel_.tile_columns;
            kernel_.pack_b(b_at(depth_.first + k.first, columns_.first + column), p_.b_stride, k.length,
                           std::min(group * kernel_.tile_columns, columns_.length - column),
                           b_panel(k, first_panel),
                           kernel_.tile_columns * padded(k) * kernel_.packed_element_bytes);
        });
        expect_not_stopped(control_);
    }

    void multiply() {
        const int64_t across = ceil_div(columns_.length, blocking_.unit_columns);
        const int64_t down = ceil_div(rows_.length, blocking_.unit_rows);
        pool_.for_each(across * down, [&](int64_t item, unsigned thread) noexcept {
            const int64_t row = item / across * blocking_.unit_rows;
            const int64_t column = item % across * blocking_.unit_columns;
            multiply_unit({row, std::min(blocking_.unit_rows, rows_.length - row)},
                          {column, std::min(blocking_.unit_columns, columns_.length - column)},
                          tiles_ + thread * sizes_.tiles_bytes);
        });
        expect_not_stopped(control_);
    }

    // Ranges within the block.
    void multiply_unit(const Range& rows, const Range& columns, std::byte* tiles) noexcept {
        const int64_t steps = std::max<int64_t>(1, step_count());  // no k at all still gives +0
        for (int64_t index = 0; index < steps; ++index) {
            if (control_.stop.stop_requested()) return;
            multiply_step(rows, columns, index, tiles);
        }
        store_unit(rows, columns, tiles);
        if (control_.done_flops != nullptr)
            control_.done_flops->fetch_add(
                static_cast<uint64_t>(2 * rows.length * columns.length * depth_.length),
                std::memory_order_relaxed);
    }

    // A panel of B is multiplied with all panels of A before the next: it stays in the first-level cache,
    // while the next one is fetched in as many parts as there are panels of A.
    void multiply_step(const Range& rows, const Range& columns, int64_t index, std::byte* tile) noexcept {
        const Range k = step(index);
        const Range next_k = index + 1 < step_count() ? step(index + 1) : k;
        const int64_t a_bytes = kernel_.tile_rows * padded(k) * kernel_.packed_element_bytes;
        const int64_t b_bytes = kernel_.tile_columns * padded(k) * kernel_.packed_element_bytes;
        const int64_t part_bytes = b_bytes / ceil_div(rows.length, kernel_.tile_rows);
        const int64_t column_panel = columns.first / kernel_.tile_columns;
        ProductKernel::TileStep tile_step;
        tile_step.depth = padded(k);
        tile_step.begin = index == 0;
        tile_step.next_b_stride_bytes =
            ceil_div(part_bytes, std::max<int64_t>(1, k.length / kernel_.depth_group));
        const std::byte* b = b_panel(k, column_panel);
        for (int64_t j = 0; j < columns.length; j += kernel_.tile_columns, b += b_bytes) {
            const bool last = j + kernel_.tile_columns >= columns.length;
            const std::byte* a = a_panel(k, rows.first / kernel_.tile_rows);
            tile_step.b_panel = b;
            tile_step.next_b = last ? b_panel(next_k, column_panel) : b + b_bytes;
            for (int64_t i = 0; i < rows.length; i += kernel_.tile_rows) {
                tile_step.a_panel = a;
                tile_step.next_a = a += a_bytes;
                tile_step.rows = std::min(kernel_.tile_rows, rows.length - i);
                tile_step.tile = tile;
                kernel_.multiply(tile_step);
                tile_step.next_b += part_bytes;
                tile += tile_bytes();
            }
        }
    }

    void store_unit(const Range& rows, const Range& columns, const std::byte* tile) const noexcept {
        const bool first_chunk = depth_.first == 0;
        const bool last_chunk = depth_.first + depth_.length == p_.depth;
        const int64_t tiles_down = ceil_div(rows.length, kernel_.tile_rows);
        for (int64_t i = 0; i < rows.length; i += kernel_.tile_rows, tile += tile_bytes())
            kernel_.store(tile, tiles_down * tile_bytes(), std::min(kernel_.tile_rows, rows.length - i),
                          columns.length, first_chunk, last_chunk,
                          c_at(rows_.first + rows.first + i, columns_.first + columns.first), p_.c_stride);
    }

    int64_t tile_bytes() const {
        return kernel_.tile_rows * kernel_.tile_columns * kernel_.result_element_bytes;
    }

    const ProductOperands& p_;
    const ProductKernel& kernel_;
    const ProductBlocking& blocking_;
    ThreadPool& pool_;
    const RunControl& control_;
    const Sizes sizes_;
    std::byte* packed_a_;
    std::byte* packed_b_;
    std::byte* tiles_;
    Range rows_, columns_, depth_;  // the block at hand
};

// Cuts the units until there are enough for the threads, as long as each is worth it.
void balance_units(ProductBlocking& blocking, const ProductKernel& kernel, const ProductOperands& p,
                   unsigned threads) {
    const int64_t rows = std::min(blocking.block_rows, p.rows);
    const int64_t columns = std::min(blocking.block_columns, p.columns);
    const auto units = [&] {
        return ceil_div(rows, blocking.unit_rows) * ceil_div(columns, blocking.unit_columns);
    };
    const auto flops = [&] { return 2 * blocking.unit_rows * blocking.unit_columns * blocking.block_depth; };
    while (units() < units_per_thread * threads && flops() > min_unit_flops) {
        if (blocking.unit_columns > kernel.tile_columns)
            blocking.unit_columns = round_up(blocking.unit_columns / 2, kernel.tile_columns);
        else if (blocking.unit_rows > kernel.tile_rows)
            blocking.unit_rows = round_up(blocking.unit_rows / 2, kernel.tile_rows);
        else
            return;
    }
}

}  // namespace

ProductBlocking blocking_of(const ProductOperands& p, const ProductKernel& kernel, unsigned threads) {
    const int64_t depth = std::clamp<int64_t>(p.depth, 1, product_chunk_length);
    const int64_t panel_depth = panel_bytes / (kernel.tile_columns * kernel.packed_element_bytes);
    ProductBlocking blocking;
    blocking.block_depth = round_up(depth, kernel.depth_group);
    blocking.panel_depth = even_part(depth, panel_depth, kernel.depth_group);
    const int64_t packed_bytes = blocking.block_depth * kernel.packed_element_bytes;  // of one row or column
    blocking.block_rows = even_part(p.rows, max_packed_a_bytes / packed_bytes, kernel.tile_rows);
    blocking.block_columns = even_part(p.columns, max_packed_b_bytes / packed_bytes, kernel.tile_columns);
    blocking.unit_rows = even_part(blocking.block_rows, max_unit_rows, kernel.tile_rows);
    blocking.unit_columns = even_part(blocking.block_columns,
                                      unit_columns_bytes / kernel.result_element_bytes, kernel.tile_columns);
    balance_units(blocking, kernel, p, threads);
    return blocking;
}

uint64_t workspace_bytes(const ProductBlocking& blocking, const ProductKernel& kernel, unsigned threads) {
    const Sizes sizes(blocking, kernel);
    return static_cast<uint64_t>(sizes.packed_a_bytes + sizes.packed_b_bytes + sizes.tiles_bytes * threads);
}

void blocked_product(const ProductOperands& operands, const ProductKernel& kernel,
                     const ProductBlocking& blocking, ThreadPool& pool, std::byte* workspace,
                     const RunControl& control) {
    BlockedProduct(operands, kernel, blocking, pool, workspace, control).run();
}

}  // namespace goblin
