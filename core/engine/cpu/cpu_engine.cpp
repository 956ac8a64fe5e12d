// The CPU engine: chooses the vector kernels, keeps threads and buffers, runs graphs on them.
#include "core/engine/cpu/cpu_engine.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/engine/cpu/blocked_product.hpp"
#include "core/engine/cpu/product_kernel.hpp"
#include "core/engine/cpu/thread_pool.hpp"
#include "core/engine/cpu/workspace.hpp"
#include "core/engine/run_nodes.hpp"
#include "core/error.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

// Held by the one caller that computes; others wait, and may be cancelled meanwhile.
class Turn {
  public:
    class Held {
      public:
        Held(Turn& turn, const RunControl& control) : turn_(turn) {
            std::unique_lock lock(turn.mutex_);
            if (!turn.free_.wait(lock, control.stop, [&] { return !turn.taken_; }))
                expect_not_stopped(control);
            turn.taken_ = true;
        }
        ~Held() {
            {
                const std::lock_guard lock(turn_.mutex_);
                turn_.taken_ = false;
            }
            turn_.free_.notify_one();
        }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

      private:
        Turn& turn_;
    };

  private:
    std::mutex mutex_;
    std::condition_variable_any free_;
    bool taken_ = false;
};

class HighwayEngine final : public CpuEngine {
  public:
    explicit HighwayEngine(const CpuEngineSettings& settings)
        : kernels_(product_kernels(settings.vector_target)),
          pool_(settings.threads != 0 ? settings.threads
                                      : std::max(1u, std::thread::hardware_concurrency())) {}

    std::string_view name() const override { return "cpu"; }
    unsigned threads() const override { return pool_.threads(); }
    uint64_t kept_memory_bytes() const override { return workspace_.size_bytes(); }
    std::string_view vector_target() const override { return kernels_.target; }

    std::optional<std::string> why_no_product(DType operand) const override {
        if (operand == DType::boolean) return "products take numbers, not bool";
        if (kernels_.of(operand) != nullptr) return std::nullopt;
        return fmt::format(
            "this processor has no fused multiply-add (fma), which products of {} need; it can take products "
            "of "
            "integers",
            name_of(operand));
    }

    std::optional<std::string> why_not(const Graph& graph) const override {
        const std::vector<TensorSpec> values = check_graph(graph);
        for (const Node& node : graph.nodes)
            if (auto reason = why_not(node, values)) return reason;
        return std::nullopt;
    }

    uint64_t product_memory_bytes(const ProductOperands& operands) const override {
        const ProductKernel* kernel = kernels_.of(operands.dtype);
        if (kernel == nullptr || operands.rows == 0 || operands.columns == 0) return 0;
        return workspace_bytes(blocking_of(operands, *kernel, threads()), *kernel, threads());
    }

    uint64_t memory_needed_bytes(const Graph& graph) const override {
        return saturating_sum({value_memory_bytes(graph), graph_workspace_bytes(graph)});
    }

    std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs,
                            const RunControl& control) override {
        if (const auto reason = why_not(graph)) throw Error(ErrorKind::numeric, *reason);
        const Turn::Held turn(turn_, control);
        const uint64_t needed_bytes = memory_needed_bytes(graph);
        expect_within_limit(needed_bytes, control);
        shrink_workspace(graph_workspace_bytes(graph), needed_bytes, control);
        return run_nodes(graph, inputs, control, graph_workspace_bytes(graph),
                         [&](const Node& node, std::span<const Tensor* const> node_inputs, Tensor& output) {
                             run_node(node, node_inputs, output, control);
                         });
    }

    void product(const ProductOperands& operands, const RunControl& control) override {
        expect_sound(operands);
        if (const auto reason = why_no_product(operands.dtype)) throw Error(ErrorKind::numeric, *reason);
        const Turn::Held turn(turn_, control);
        const uint64_t needed_bytes = product_memory_bytes(operands);
        expect_within_limit(needed_bytes, control);
        shrink_workspace(needed_bytes, needed_bytes, control);
        multiply(operands, control);
    }

  private:
    // The most that any node needs: nodes run one after another in the same workspace.
    uint64_t graph_workspace_bytes(const Graph& graph) const {
        const std::vector<TensorSpec> values = check_graph(graph);
        uint64_t bytes = 0;
        for (const Node& node : graph.nodes) bytes = std::max(bytes, node_workspace_bytes(node, values));
        return bytes;
    }

    // ---- one case for each operator: the compiler names what is missing
    std::optional<std::string> why_not(const Node& node, const std::vector<TensorSpec>& values) const {
        switch (node.op) {
            case Operator::matmul:
                return why_no_product(values[node.inputs[0]].dtype);
        }
        return "an operator that this engine doesn't know";
    }

    uint64_t node_workspace_bytes(const Node& node, const std::vector<TensorSpec>& values) const {
        switch (node.op) {
            case Operator::matmul: {
                const TensorSpec& a = values[node.inputs[0]];
                const TensorSpec& b = values[node.inputs[1]];
                return product_memory_bytes(
                    {.dtype = a.dtype, .rows = a.shape[0], .depth = a.shape[1], .columns = b.shape[1]});
            }
        }
        return 0;
    }

    // Gives back what an earlier, larger run left, where it would not fit the limit of this one.
    void shrink_workspace(uint64_t own_bytes, uint64_t needed_bytes, const RunControl& control) {
        const uint64_t beside_bytes = needed_bytes - own_bytes;
        if (saturating_sum({workspace_.size_bytes(), beside_bytes}) > control.memory_limit_bytes)
            workspace_.release();
    }

    void run_node(const Node& node, std::span<const Tensor* const> inputs, Tensor& output,
                  const RunControl& control) {
        switch (node.op) {
            case Operator::matmul:
                multiply(product_of(*inputs[0], *inputs[1], output), control);
                return;
        }
    }

    void multiply(const ProductOperands& operands, const RunControl& control) {
        if (operands.rows == 0 || operands.columns == 0) return;
        const ProductKernel& kernel = *kernels_.of(operands.dtype);
        const ProductBlocking blocking = blocking_of(operands, kernel, threads());
        std::byte* memory = workspace_.reserve(workspace_bytes(blocking, kernel, threads()));
        blocked_product(operands, kernel, blocking, pool_, memory, control);
    }

    ProductKernels kernels_;
    ThreadPool pool_;
    Workspace workspace_;  // of the caller whose turn it is
    Turn turn_;
};

}  // namespace

std::unique_ptr<CpuEngine> make_cpu_engine(const CpuEngineSettings& settings) {
    return std::make_unique<HighwayEngine>(settings);
}

std::vector<std::string> cpu_vector_targets() {
    return vector_targets();
}

}  // namespace goblin
