// Engine: what runs a graph. Every engine gives the bits the arithmetic contract defines.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin {

// What the caller holds over a run: cancel (obeyed within 100 ms), a memory limit, and progress to read
// meanwhile.
struct RunControl {
    std::stop_token stop{};
    // For outputs, intermediate values and the engine's own buffers together; the inputs are the caller's.
    uint64_t memory_limit_bytes = UINT64_MAX;
    // Operations done so far, on the scale of GraphCost::flops; null when nobody looks.
    std::atomic<uint64_t>* done_flops = nullptr;
};

class Engine {
  public:
    virtual ~Engine() = default;
    virtual std::string_view name() const = 0;
    // Empty when this engine can run the graph; else the reason in plain words.
    virtual std::optional<std::string> why_not(const Graph& graph) const = 0;
    // Bytes that run() takes beside the inputs: outputs, intermediate values, own buffers.
    virtual uint64_t memory_needed_bytes(const Graph& graph) const = 0;
    // Inputs must have the specs of graph.inputs. Throws ErrorKind::memory before it allocates when the limit
    // is too low, ErrorKind::cancelled when stopped, ErrorKind::numeric when why_not() has a reason.
    virtual std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs,
                                    const RunControl& control) = 0;
};

}  // namespace goblin
