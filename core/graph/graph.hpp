// Graph: operators applied to inputs and to each other's outputs. A task is a graph plus the numbers it
// needs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/operators.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin {

inline constexpr size_t max_graph_nodes = 65'536;
inline constexpr size_t max_graph_inputs = 1'024;
inline constexpr size_t max_graph_outputs = 1'024;

// Values are numbered: first the graph's inputs, then each node's output. A node uses only values before its
// own.
struct Node {
    Operator op = Operator::matmul;
    std::vector<uint32_t> inputs;
    friend bool operator==(const Node&, const Node&) = default;
};

struct Graph {
    std::vector<TensorSpec> inputs;
    std::vector<Node> nodes;
    std::vector<uint32_t> outputs;
    friend bool operator==(const Graph&, const Graph&) = default;
};

struct GraphCost {
    uint64_t flops = 0;
    // Bytes of all values together: what an engine needs that frees nothing early. Saturates at 2^64 - 1.
    uint64_t memory_bytes = 0;
};

// The executable grammar: type and shape of every value, inputs included. Throws ErrorKind::input with a
// message that names the offending node. Nothing is allocated beyond the answer, whatever the graph claims.
std::vector<TensorSpec> check_graph(const Graph& graph);
GraphCost cost_of(const Graph& graph);
std::vector<TensorSpec> output_specs(const Graph& graph);

// C = A · B as a graph of one node.
Graph product_graph(const TensorSpec& a, const TensorSpec& b);

}  // namespace goblin
