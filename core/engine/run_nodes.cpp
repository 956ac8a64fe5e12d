// Runs a graph node by node on this computer.
#include "core/engine/run_nodes.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "core/engine/product.hpp"
#include "core/error.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

constexpr uint64_t tensor_padding_bytes = 64;

uint64_t memory_bytes_of(const TensorSpec& spec) {
    return saturating_sum({spec.size_bytes(), tensor_padding_bytes});
}

void expect_inputs(const Graph& graph, std::span<const Tensor> inputs) {
    if (inputs.size() != graph.inputs.size())
        throw Error(ErrorKind::input, "expected {} inputs, found {}", graph.inputs.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].spec() != graph.inputs[i])
            throw Error(ErrorKind::input, "expected {} as input {}, found {}", graph.inputs[i].text(), i,
                        inputs[i].spec().text());
}

// A value is moved to the last output that wants it and copied to the others; inputs are always copied.
bool is_copied(const Graph& graph, size_t output) {
    const uint32_t value = graph.outputs[output];
    if (value < graph.inputs.size()) return true;
    for (size_t later = output + 1; later < graph.outputs.size(); ++later)
        if (graph.outputs[later] == value) return true;
    return false;
}

}  // namespace

uint64_t value_memory_bytes(const Graph& graph) {
    const std::vector<TensorSpec> values = check_graph(graph);
    uint64_t bytes = 0;
    for (size_t value = graph.inputs.size(); value < values.size(); ++value)
        bytes = saturating_sum({bytes, memory_bytes_of(values[value])});
    for (size_t output = 0; output < graph.outputs.size(); ++output)
        if (is_copied(graph, output))
            bytes = saturating_sum({bytes, memory_bytes_of(values[graph.outputs[output]])});
    return bytes;
}

std::vector<Tensor> run_nodes(const Graph& graph, std::span<const Tensor> inputs, const RunControl& control,
                              uint64_t engine_memory_bytes, const NodeKernel& kernel) {
    const std::vector<TensorSpec> specs = check_graph(graph);
    expect_inputs(graph, inputs);
    expect_within_limit(saturating_sum({value_memory_bytes(graph), engine_memory_bytes}), control);

    std::vector<Tensor> made;
    made.reserve(graph.nodes.size());
    const auto value = [&](uint32_t index) -> const Tensor& {
        return index < inputs.size() ? inputs[index] : made[index - inputs.size()];
    };
    for (const Node& node : graph.nodes) {
        expect_not_stopped(control);
        std::vector<const Tensor*> node_inputs;
        for (const uint32_t input : node.inputs) node_inputs.push_back(&value(input));
        Tensor output(specs[inputs.size() + made.size()]);
        kernel(node, node_inputs, output);
        made.push_back(std::move(output));
    }

    std::vector<Tensor> outputs;
    outputs.reserve(graph.outputs.size());
    for (size_t output = 0; output < graph.outputs.size(); ++output) {
        const uint32_t index = graph.outputs[output];
        outputs.push_back(is_copied(graph, output) ? value(index).clone()
                                                   : std::move(made[index - inputs.size()]));
    }
    return outputs;
}

void expect_not_stopped(const RunControl& control) {
    if (control.stop.stop_requested()) throw Error(ErrorKind::cancelled, "the computation was stopped");
}

void expect_within_limit(uint64_t needed_bytes, const RunControl& control) {
    if (needed_bytes > control.memory_limit_bytes)
        throw Error(
            ErrorKind::memory,
            "expected a task that needs at most {} bytes of memory, found one that needs {}; raise the "
            "memory limit or take smaller tasks",
            control.memory_limit_bytes, needed_bytes);
}

ProductOperands product_of(const Tensor& a, const Tensor& b, Tensor& c) {
    assert(a.shape()[1] == b.shape()[0] && a.dtype() == b.dtype());
    return {.dtype = a.dtype(),
            .rows = a.shape()[0],
            .depth = a.shape()[1],
            .columns = b.shape()[1],
            .a = a.bytes().data(),
            .a_stride = a.shape()[1],
            .b = b.bytes().data(),
            .b_stride = b.shape()[1],
            .c = c.bytes().data(),
            .c_stride = b.shape()[1]};
}

}  // namespace goblin
