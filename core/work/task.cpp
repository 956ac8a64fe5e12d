// Checks tasks and turns them into messages and back.
#include "core/work/task.hpp"

#include <cassert>
#include <cstring>

#include "core/error.hpp"

namespace goblin {

void check_task(const Task& task) {
    if (task.inputs.size() != task.graph.inputs.size())
        throw Error(ErrorKind::input, "task: expected {} inputs, found {}", task.graph.inputs.size(),
                    task.inputs.size());
    for (size_t i = 0; i < task.inputs.size(); ++i) {
        const TensorSpec& spec = task.graph.inputs[i];
        const auto& bytes = task.inputs[i].inline_bytes;
        if (bytes && bytes->size() != spec.size_bytes())
            throw Error(ErrorKind::input, "task: expected {} bytes for input {} ({}), found {}",
                        spec.size_bytes(), i, spec.text(), bytes->size());
    }
    if (task.graph.outputs.size() > limits::task_outputs)
        throw Error(ErrorKind::input, "task: expected at most {} outputs, found {}", limits::task_outputs,
                    task.graph.outputs.size());
    check_graph(task.graph);
}

Frame frame_of(const Tensor& tensor) {
    const auto bytes = tensor.bytes();
    const auto* first = reinterpret_cast<const uint8_t*>(bytes.data());
    return {tensor.spec(), Bytes(first, first + bytes.size())};
}

Tensor tensor_of(const Frame& frame) {
    if (frame.bytes.size() != frame.spec.size_bytes())
        throw Error(ErrorKind::input, "expected {} bytes for {}, found {}", frame.spec.size_bytes(),
                    frame.spec.text(), frame.bytes.size());
    Tensor tensor(frame.spec);
    if (!frame.bytes.empty()) std::memcpy(tensor.bytes().data(), frame.bytes.data(), frame.bytes.size());
    return tensor;
}

SpecMessage message_of(const TensorSpec& spec) {
    SpecMessage message{static_cast<uint64_t>(spec.dtype), {}};
    for (const int64_t length : spec.shape.dims()) message.dims.push_back(static_cast<uint64_t>(length));
    return message;
}

TensorSpec spec_of(const SpecMessage& message) {
    const std::optional<DType> dtype = dtype_from_code(message.dtype);
    if (!dtype)
        throw Error(ErrorKind::input, "message: expected an element type from 1 to {}, found {}",
                    all_dtypes().size(), message.dtype);
    std::vector<int64_t> dims;
    for (const uint64_t length : message.dims) {
        if (length > static_cast<uint64_t>(max_elements))
            throw Error(ErrorKind::input, "message: expected axis lengths up to 2^40, found {}", length);
        dims.push_back(static_cast<int64_t>(length));
    }
    return {*dtype, Shape(dims)};
}

FrameMessage message_of(Frame frame) {
    return {message_of(frame.spec), std::move(frame.bytes)};
}

Frame frame_of(FrameMessage message) {
    return {spec_of(message.spec), std::move(message.bytes)};
}

TaskMessage message_of(const Task& task) {
    assert(task.inputs.size() == task.graph.inputs.size());
    TaskMessage message;
    message.contract = task.contract;
    for (size_t i = 0; i < task.inputs.size(); ++i)
        message.inputs.push_back(
            {message_of(task.graph.inputs[i]), task.inputs[i].digest, task.inputs[i].inline_bytes});
    for (const Node& node : task.graph.nodes)
        message.nodes.push_back(
            {std::string(operator_info(node.op).name), {node.inputs.begin(), node.inputs.end()}});
    message.outputs.assign(task.graph.outputs.begin(), task.graph.outputs.end());
    return message;
}

namespace {

std::vector<uint32_t> value_numbers(const std::vector<uint64_t>& numbers) {
    std::vector<uint32_t> values;
    for (const uint64_t number : numbers) {
        if (number >= max_graph_nodes + max_graph_inputs)
            throw Error(ErrorKind::input, "message: expected the number of a value, found {}", number);
        values.push_back(static_cast<uint32_t>(number));
    }
    return values;
}

}  // namespace

Task task_of(TaskMessage message) {
    Task task;
    task.contract = message.contract;
    for (TaskInputMessage& input : message.inputs) {
        task.graph.inputs.push_back(spec_of(input.spec));
        task.inputs.push_back({input.digest, std::move(input.bytes)});
    }
    for (const NodeMessage& node : message.nodes) {
        const std::optional<Operator> op = operator_from_name(node.op);
        if (!op)
            throw Error(ErrorKind::input,
                        "message: expected an operator of the catalogue, found one that is not; update this "
                        "program or the lab node");
        task.graph.nodes.push_back({*op, value_numbers(node.inputs)});
    }
    task.graph.outputs = value_numbers(message.outputs);
    check_task(task);
    return task;
}

}  // namespace goblin
