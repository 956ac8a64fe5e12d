// Grid: the one regular grid of tiles that a product is cut into, fixed at submission.
#pragma once

#include <cstdint>

#include "core/tensor/block.hpp"
#include "core/tensor/tensor.hpp"
#include "labcli/jobs/capacity.hpp"

namespace goblin::lab {

struct ProductSize {
    int64_t rows = 0;   // of A and C
    int64_t depth = 0;  // columns of A, rows of B
    int64_t cols = 0;   // of B and C
    DType dtype = DType::f32;

    TensorSpec left() const { return {dtype, Shape{rows, depth}}; }
    TensorSpec right() const { return {dtype, Shape{depth, cols}}; }
    friend bool operator==(const ProductSize&, const ProductSize&) = default;
};

class Grid {
  public:
    Grid(const ProductSize& size, int64_t tile_rows, int64_t tile_cols);

    int64_t tile_rows() const { return tile_rows_; }
    int64_t tile_cols() const { return tile_cols_; }
    uint64_t row_panels() const { return row_panels_; }
    uint64_t col_panels() const { return col_panels_; }
    uint64_t tiles() const { return row_panels_ * col_panels_; }
    // Where a tile lies in C, and which panels it needs. Tiles are numbered so that neighbours share a panel
    // of A, and runs within a band of 8 rows of tiles share panels of B, too.
    Block tile(uint64_t number) const;
    uint64_t row_panel_of(uint64_t number) const { return place(number).row_panel; }
    uint64_t col_panel_of(uint64_t number) const { return place(number).col_panel; }

  private:
    struct Place {
        uint64_t row_panel;
        uint64_t col_panel;
    };
    Place place(uint64_t number) const;

    ProductSize size_;
    int64_t tile_rows_;
    int64_t tile_cols_;
    uint64_t row_panels_;
    uint64_t col_panels_;
};

// The largest tiles for which a task fits the smallest computer's memory with room for the engine, takes a
// minute at most on the slowest one, gives each computer several tasks where the product is large enough, and
// whose result can be held in memory while it is checked. Throws ErrorKind::input when not even one element
// fits.
Grid choose_grid(const ProductSize& size, const Capacity& capacity);

}  // namespace goblin::lab
