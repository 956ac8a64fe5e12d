// Chooses and numbers the tiles of a product.
#include "labcli/jobs/product/grid.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/graph/graph.hpp"
#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t band_rows = 8;
constexpr uint64_t largest_tile_bytes = uint64_t{32} << 20;
// Below this much work a task costs more to hand out than to compute.
constexpr uint64_t smallest_worthwhile_flops = uint64_t{1} << 31;
// Engines pack panels beside the operands; what they need stays well under this.
constexpr uint64_t engine_bytes = uint64_t{96} << 20;
constexpr int64_t tile_multiple = 64;

uint64_t pieces(int64_t length, int64_t piece) {
    return length == 0 ? 0 : (static_cast<uint64_t>(length) - 1) / static_cast<uint64_t>(piece) + 1;
}

struct TileCost {
    uint64_t flops;
    uint64_t memory_bytes;
    uint64_t output_bytes;
};

TileCost cost_of_tile(const ProductSize& size, int64_t rows, int64_t cols) {
    const Graph graph =
        product_graph({size.dtype, Shape{rows, size.depth}}, {size.dtype, Shape{size.depth, cols}});
    const GraphCost cost = cost_of(graph);
    return {cost.flops, cost.memory_bytes, output_specs(graph)[0].size_bytes()};
}

// Equal pieces, at most `largest` long, rounded up to whole vectors.
int64_t even_piece(int64_t length, int64_t largest) {
    if (length == 0) return 1;
    const auto count = static_cast<int64_t>(pieces(length, largest));
    const int64_t even = (length - 1) / count + 1;
    const int64_t rounded = (even + tile_multiple - 1) / tile_multiple * tile_multiple;
    return std::min(length, rounded <= largest ? rounded : even);
}

}  // namespace

Grid::Grid(const ProductSize& size, int64_t tile_rows, int64_t tile_cols)
    : size_(size),
      tile_rows_(tile_rows),
      tile_cols_(tile_cols),
      row_panels_(pieces(size.rows, tile_rows)),
      col_panels_(pieces(size.cols, tile_cols)) {
    assert(tile_rows > 0 && tile_cols > 0);
}

Grid::Place Grid::place(uint64_t number) const {
    assert(number < tiles());
    const uint64_t per_band = band_rows * col_panels_;
    const uint64_t band = number / per_band;
    const uint64_t rows_here = std::min(band_rows, row_panels_ - band * band_rows);
    const uint64_t within = number % per_band;
    return {band * band_rows + within % rows_here, within / rows_here};
}

Block Grid::tile(uint64_t number) const {
    const Place at = place(number);
    Block block;
    block.row = static_cast<int64_t>(at.row_panel) * tile_rows_;
    block.col = static_cast<int64_t>(at.col_panel) * tile_cols_;
    block.rows = std::min(tile_rows_, size_.rows - block.row);
    block.cols = std::min(tile_cols_, size_.cols - block.col);
    return block;
}

Grid choose_grid(const ProductSize& size, const Capacity& capacity) {
    const uint64_t memory_bytes = capacity.smallest_memory_bytes > 2 * engine_bytes
                                      ? capacity.smallest_memory_bytes - engine_bytes
                                      : capacity.smallest_memory_bytes / 2;
    const double longest_flops =
        static_cast<double>(capacity.slowest_flops) * static_cast<double>(limits::task_target_ms) / 1000;
    const uint64_t wanted_tiles = std::max<uint64_t>(16, 8 * capacity.computers);
    for (int64_t edge = std::max<int64_t>({size.rows, size.cols, 1});; edge = edge * 7 / 8) {
        const int64_t rows = even_piece(size.rows, edge);
        const int64_t cols = even_piece(size.cols, edge);
        const TileCost cost = cost_of_tile(size, rows, cols);
        const Grid grid(size, rows, cols);
        const bool fits = cost.memory_bytes <= memory_bytes && cost.output_bytes <= largest_tile_bytes;
        const bool short_enough = static_cast<double>(cost.flops) <= longest_flops;
        const bool many_enough = grid.tiles() >= wanted_tiles || cost.flops <= smallest_worthwhile_flops;
        if (fits && short_enough && many_enough) return grid;
        if (edge > 1) continue;
        if (cost.memory_bytes > memory_bytes)
            throw Error(ErrorKind::input,
                        "expected one row and one column of the operands to fit a contributor's memory ({} "
                        "bytes), found {} bytes; "
                        "ask for contributors with more memory",
                        memory_bytes, cost.memory_bytes);
        return grid;
    }
}

}  // namespace goblin::lab
