// Runs a graph node by node on this computer: checks, memory limit and outputs, the same for every engine.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/engine/engine.hpp"

namespace goblin {

// Fills the output of one node; the output's memory is zero before.
using NodeKernel =
    std::function<void(const Node& node, std::span<const Tensor* const> inputs, Tensor& output)>;

// Bytes that run_nodes() takes for the values it makes: every node's output, and copies of those that are
// wanted more than once. Saturates.
uint64_t value_memory_bytes(const Graph& graph);

// Throws ErrorKind::input when an input isn't what the graph says, ErrorKind::memory when
// value_memory_bytes() and the engine's own buffers don't fit the limit together, ErrorKind::cancelled when
// stopped; passes on what the kernel throws.
std::vector<Tensor> run_nodes(const Graph& graph, std::span<const Tensor> inputs, const RunControl& control,
                              uint64_t engine_memory_bytes, const NodeKernel& kernel);

// Throws ErrorKind::cancelled when the caller asked to stop.
void expect_not_stopped(const RunControl& control);
// Throws ErrorKind::memory when `needed_bytes` is above the caller's limit.
void expect_within_limit(uint64_t needed_bytes, const RunControl& control);

// The product that a matmul node asks for, over its tensors' memory.
struct ProductOperands;
ProductOperands product_of(const Tensor& a, const Tensor& b, Tensor& c);

}  // namespace goblin
