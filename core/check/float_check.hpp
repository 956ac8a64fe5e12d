// The product check of float tiles: residuals decide which rows are doubted, exact recomputation what they
// are.
#pragma once

#include "core/check/product_check.hpp"
#include "core/check/tile.hpp"

namespace goblin {

// f32 and f64. docs/product-check.md derives the bounds.
template <typename T>
ProductVerdict check_floats(const Tile& tile, SecretDraws& draws, double escape_probability);

}  // namespace goblin
