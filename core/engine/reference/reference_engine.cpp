// The reference engine: one short function per primitive, nothing fused, nothing blocked.
#include "core/engine/reference/reference_engine.hpp"

#include <algorithm>

#include "core/arithmetic/float_environment.hpp"
#include "core/arithmetic/product.hpp"
#include "core/engine/run_nodes.hpp"

namespace goblin {

namespace {

template <typename T>
void matmul(const ProductOperands& p, const RunControl& control) {
    const auto* a = static_cast<const T*>(p.a);
    const auto* b = static_cast<const T*>(p.b);
    auto* c = static_cast<ProductOf<T>*>(p.c);
    for (int64_t i = 0; i < p.rows; ++i)
        for (int64_t j = 0; j < p.columns; ++j) {
            ProductChain<T> chain;
            for (int64_t k = 0; k < p.depth; k += product_chunk_length) {
                expect_not_stopped(control);
                const int64_t length = std::min(product_chunk_length, p.depth - k);
                chain.add_chunk({a + i * p.a_stride + k, 1}, {b + k * p.b_stride + j, p.b_stride}, length);
                if (control.done_flops != nullptr) *control.done_flops += 2 * static_cast<uint64_t>(length);
            }
            c[i * p.c_stride + j] = chain.finish();
        }
}

void run_node(const Node& node, std::span<const Tensor* const> inputs, Tensor& output,
              const RunControl& control) {
    switch (node.op) {
        case Operator::matmul:
            reference_product(product_of(*inputs[0], *inputs[1], output), control);
            return;
    }
}

class ReferenceEngine final : public Engine {
  public:
    std::string_view name() const override { return "reference"; }
    std::optional<std::string> why_not(const Graph&) const override { return std::nullopt; }
    uint64_t memory_needed_bytes(const Graph& graph) const override { return value_memory_bytes(graph); }
    std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs,
                            const RunControl& control) override {
        return run_nodes(graph, inputs, control, 0,
                         [&](const Node& node, std::span<const Tensor* const> node_inputs, Tensor& output) {
                             run_node(node, node_inputs, output, control);
                         });
    }
};

}  // namespace

void reference_product(const ProductOperands& operands, const RunControl& control) {
    expect_sound(operands);
    const FloatEnvironment environment;
    with_product_type(operands.dtype, [&](auto zero) { matmul<decltype(zero)>(operands, control); });
}

std::unique_ptr<Engine> make_reference_engine() {
    return std::make_unique<ReferenceEngine>();
}

}  // namespace goblin
