// A product to be checked: operands, the honest result, and secrets that a test can draw again.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/check/product_check.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/graph/graph.hpp"

namespace goblin {

// Bytes that depend on the seed alone.
inline SecretSource seeded_secret(uint64_t seed) {
    auto random = std::make_shared<std::mt19937_64>(seed);
    return [random](std::span<uint8_t> bytes) {
        for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
            const uint64_t word = (*random)();
            std::memcpy(bytes.data() + i, &word, std::min(sizeof(word), bytes.size() - i));
        }
    };
}

// A fresh seed; printed by the test that uses it.
inline uint64_t any_seed() {
    return std::random_device()();
}

struct CheckedProduct {
    Tensor a, b, c;  // c is honest until a test spoils it

    // Computes c.
    CheckedProduct(Tensor left, Tensor right) : a(std::move(left)), b(std::move(right)) {
        static const std::unique_ptr<CpuEngine> engine = make_cpu_engine({.threads = 2, .vector_target = {}});
        std::vector<Tensor> operands;
        operands.push_back(std::move(a));
        operands.push_back(std::move(b));
        c = std::move(engine->run(product_graph(operands[0].spec(), operands[1].spec()), operands, {})[0]);
        a = std::move(operands[0]);
        b = std::move(operands[1]);
    }

    ProductVerdict check(const ProductCheckOptions& options = {}) const {
        static ProductChecker checker(2);
        return checker.check(MemoryMatrix(a), MemoryMatrix(b), MemoryMatrix(c), options);
    }
    ProductVerdict check(uint64_t seed) const { return check({.secret = seeded_secret(seed), .stop = {}}); }
};

// Operands of a shape, filled by fill(a, b).
template <typename T, typename Fill>
CheckedProduct checked_product(int64_t m, int64_t k, int64_t n, Fill fill) {
    Tensor a(dtype_of<T>(), Shape{m, k});
    Tensor b(dtype_of<T>(), Shape{k, n});
    fill(a, b);
    return {std::move(a), std::move(b)};
}

}  // namespace goblin
