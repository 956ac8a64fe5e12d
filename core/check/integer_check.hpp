// The product check of integer tiles: exact modulo a secret prime, or modulo 2^w where products may wrap.
#pragma once

#include "core/check/product_check.hpp"
#include "core/check/recompute.hpp"

namespace goblin {

template <typename T>
ProductVerdict check_integers(const Tile& tile, SecretDraws& draws);

}  // namespace goblin
