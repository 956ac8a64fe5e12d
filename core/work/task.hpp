// Task: a small graph of operators plus the numbers it needs. It carries no names, no paths and no meaning.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/work/digest.hpp"
#include "core/work/message_codec.hpp"

namespace goblin {

// A tensor inside a message: type, shape and raw little-endian bytes.
struct Frame {
    TensorSpec spec;
    Bytes bytes;
};

// One of a task's inputs: the blob of that digest (unkeyed, over the input's spec), or the bytes themselves.
struct TaskInput {
    Digest digest;
    std::optional<Bytes> inline_bytes;
};

struct Task {
    uint64_t contract = 0;
    Graph graph;
    std::vector<TaskInput> inputs;  // one for each of graph.inputs

    std::vector<TensorSpec> outputs() const { return output_specs(graph); }
};

// What a computer accepts: checked before anything is allocated or fetched. Throws ErrorKind::input with the
// reason.
void check_task(const Task& task);

Frame frame_of(const Tensor& tensor);
// Throws ErrorKind::input when the bytes are not as many as the spec says.
Tensor tensor_of(const Frame& frame);

// The wire form of shapes, graphs and tasks.
struct SpecMessage {
    uint64_t dtype = 0;
    std::vector<uint64_t> dims;
};
template <class V>
void describe(V& v, SpecMessage& m) {
    v.field("dtype", m.dtype);
    v.field("dims", m.dims, max_rank);
}
SpecMessage message_of(const TensorSpec& spec);
TensorSpec spec_of(const SpecMessage& message);

struct FrameMessage {
    SpecMessage spec;
    Bytes bytes;
};
template <class V>
void describe(V& v, FrameMessage& m) {
    v.field("spec", m.spec);
    v.field("bytes", m.bytes, limits::inline_tensor_bytes);
}
FrameMessage message_of(Frame frame);
Frame frame_of(FrameMessage message);

struct NodeMessage {
    std::string op;
    std::vector<uint64_t> inputs;
};
template <class V>
void describe(V& v, NodeMessage& m) {
    v.field("op", m.op, limits::name_characters);
    v.field("inputs", m.inputs, limits::task_inputs);
}

struct TaskInputMessage {
    SpecMessage spec;
    Digest digest;
    std::optional<Bytes> bytes;
};
template <class V>
void describe(V& v, TaskInputMessage& m) {
    v.field("spec", m.spec);
    v.field("digest", m.digest);
    v.field("bytes", m.bytes, limits::inline_tensor_bytes);
}

struct TaskMessage {
    uint64_t contract = 0;
    std::vector<TaskInputMessage> inputs;
    std::vector<NodeMessage> nodes;
    std::vector<uint64_t> outputs;
};
template <class V>
void describe(V& v, TaskMessage& m) {
    v.field("contract", m.contract);
    v.field("inputs", m.inputs, limits::task_inputs);
    v.field("nodes", m.nodes, max_graph_nodes);
    v.field("outputs", m.outputs, limits::task_outputs);
}
TaskMessage message_of(const Task& task);
// Throws ErrorKind::input for what check_task() refuses.
Task task_of(TaskMessage message);

}  // namespace goblin
