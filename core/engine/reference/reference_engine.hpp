// The reference engine: the contract in code, scalar and slow; what every other engine must equal bit for
// bit.
#pragma once

#include <memory>

#include "core/engine/engine.hpp"
#include "core/engine/product.hpp"

namespace goblin {

std::unique_ptr<Engine> make_reference_engine();

// Throws ErrorKind::usage for unsound operands, ErrorKind::cancelled when stopped. Takes no memory.
void reference_product(const ProductOperands& operands, const RunControl& control);

}  // namespace goblin
