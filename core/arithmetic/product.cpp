// The types that have products.
#include "core/arithmetic/product.hpp"

#include "core/error.hpp"

namespace goblin {

DType product_dtype(DType operand) {
    if (operand == DType::boolean)
        throw Error(ErrorKind::input, "products expect numbers, found bool; cast the operands to i32 first");
    return operand == DType::i8 || operand == DType::u8 ? DType::i32 : operand;
}

}  // namespace goblin
