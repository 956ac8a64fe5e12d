// The operator catalogue: one row for each operator. Names and the checks of graphs come from it; a test goes
// through it and asks the engines and docs/arithmetic.md for each row.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/tensor/tensor.hpp"

namespace goblin {

// identifier, number of inputs, what it computes. Beside a row, operators.cpp has infer_IDENTIFIER and
// flops_IDENTIFIER.
#define GOBLIN_OPERATORS(X) \
    X(matmul, 2, "matrix product [M,K] x [K,N] -> [M,N]; i8 and u8 give i32, other types their own")

enum class Operator : uint16_t {
#define GOBLIN_OPERATOR_ENUM(name, arity, summary) name,
    GOBLIN_OPERATORS(GOBLIN_OPERATOR_ENUM)
#undef GOBLIN_OPERATOR_ENUM
};

struct OperatorInfo {
    Operator op;
    std::string_view name;
    size_t arity;
    std::string_view summary;
    // The output's type and shape. Throws ErrorKind::input where the inputs don't fit the operator.
    TensorSpec (*infer)(std::span<const TensorSpec> inputs);
    // Floating-point or integer operations, a product and its addition counting as two; saturates at 2^64
    // - 1.
    uint64_t (*flops)(std::span<const TensorSpec> inputs);
};

std::span<const OperatorInfo> all_operators();
const OperatorInfo& operator_info(Operator op);
std::optional<Operator> operator_from_name(std::string_view name);

}  // namespace goblin
