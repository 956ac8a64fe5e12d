// The grammar that accepts or refuses every node of a graph, and what a graph costs.
#include "core/graph/graph.hpp"

#include "core/error.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

std::vector<TensorSpec> specs_of(const Node& node, const std::vector<TensorSpec>& values) {
    std::vector<TensorSpec> specs;
    specs.reserve(node.inputs.size());
    for (const uint32_t value : node.inputs) specs.push_back(values[value]);
    return specs;
}

TensorSpec infer(const Node& node, size_t index, const std::vector<TensorSpec>& values) {
    const OperatorInfo& info = operator_info(node.op);
    if (node.inputs.size() != info.arity)
        throw Error(ErrorKind::input, "node {} ({}): expected {} inputs, found {}", index, info.name,
                    info.arity, node.inputs.size());
    for (const uint32_t value : node.inputs)
        if (value >= values.size())
            throw Error(ErrorKind::input,
                        "node {} ({}): expected inputs computed before it (0 to {}), found {}", index,
                        info.name, static_cast<int64_t>(values.size()) - 1, value);
    try {
        return info.infer(specs_of(node, values));
    } catch (const Error& error) {
        throw Error(ErrorKind::input, "node {}: {}", index, error.what());
    }
}

}  // namespace

std::vector<TensorSpec> check_graph(const Graph& graph) {
    if (graph.inputs.size() > max_graph_inputs)
        throw Error(ErrorKind::input, "expected at most {} inputs, found {}", max_graph_inputs,
                    graph.inputs.size());
    if (graph.nodes.size() > max_graph_nodes)
        throw Error(ErrorKind::input, "expected at most {} nodes, found {}", max_graph_nodes,
                    graph.nodes.size());
    if (graph.outputs.empty() || graph.outputs.size() > max_graph_outputs)
        throw Error(ErrorKind::input, "expected 1 to {} outputs, found {}", max_graph_outputs,
                    graph.outputs.size());
    std::vector<TensorSpec> values = graph.inputs;
    values.reserve(graph.inputs.size() + graph.nodes.size());
    for (size_t index = 0; index < graph.nodes.size(); ++index)
        values.push_back(infer(graph.nodes[index], index, values));
    for (const uint32_t output : graph.outputs)
        if (output >= values.size())
            throw Error(ErrorKind::input, "expected outputs among the {} values of the graph, found {}",
                        values.size(), output);
    return values;
}

GraphCost cost_of(const Graph& graph) {
    const std::vector<TensorSpec> values = check_graph(graph);
    GraphCost cost;
    for (const Node& node : graph.nodes)
        cost.flops = saturating_sum({cost.flops, operator_info(node.op).flops(specs_of(node, values))});
    for (const TensorSpec& value : values)
        cost.memory_bytes = saturating_sum({cost.memory_bytes, value.size_bytes()});
    return cost;
}

std::vector<TensorSpec> output_specs(const Graph& graph) {
    const std::vector<TensorSpec> values = check_graph(graph);
    std::vector<TensorSpec> specs;
    for (const uint32_t output : graph.outputs) specs.push_back(values[output]);
    return specs;
}

Graph product_graph(const TensorSpec& a, const TensorSpec& b) {
    return Graph{{a, b}, {Node{Operator::matmul, {0, 1}}}, {2}};
}

}  // namespace goblin
