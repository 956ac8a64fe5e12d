// Shape and type rules and costs of the operators in the catalogue.
#include "core/graph/operators.hpp"

#include <array>
#include <cassert>
#include <limits>

#include "core/error.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

TensorSpec infer_matmul(std::span<const TensorSpec> inputs) {
    const TensorSpec& a = inputs[0];
    const TensorSpec& b = inputs[1];
    if (a.shape.rank() != 2 || b.shape.rank() != 2)
        throw Error(ErrorKind::input, "matmul expects two matrices, found {} and {}", a.text(), b.text());
    if (a.dtype != b.dtype)
        throw Error(ErrorKind::input,
                    "matmul expects matrices of one type, found {} and {}; cast one of them first", a.text(),
                    b.text());
    if (a.shape[1] != b.shape[0])
        throw Error(ErrorKind::input,
                    "matmul expects as many columns on the left as rows on the right, found {} and {}",
                    a.text(), b.text());
    if (a.dtype == DType::boolean)
        throw Error(ErrorKind::input, "matmul expects numbers, found {}; cast it to i32 first", a.text());
    const bool widens = a.dtype == DType::i8 || a.dtype == DType::u8;
    return {widens ? DType::i32 : a.dtype, Shape{a.shape[0], b.shape[1]}};
}

uint64_t flops_matmul(std::span<const TensorSpec> inputs) {
    const auto length = [&](size_t input, size_t axis) {
        return static_cast<uint64_t>(inputs[input].shape[axis]);
    };
    return saturating_product({2, length(0, 0), length(0, 1), length(1, 1)});
}

constexpr std::array table = {
#define GOBLIN_OPERATOR_ROW(name, arity, summary) \
    OperatorInfo{Operator::name, #name, arity, summary, infer_##name, flops_##name},
    GOBLIN_OPERATORS(GOBLIN_OPERATOR_ROW)
#undef GOBLIN_OPERATOR_ROW
};

}  // namespace

std::span<const OperatorInfo> all_operators() {
    return table;
}

const OperatorInfo& operator_info(Operator op) {
    const auto index = static_cast<size_t>(op);
    assert(index < table.size() && table[index].op == op);
    return table[index];
}

std::optional<Operator> operator_from_name(std::string_view name) {
    for (const OperatorInfo& info : table)
        if (info.name == name) return info.op;
    return std::nullopt;
}

}  // namespace goblin
