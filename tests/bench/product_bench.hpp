// A square product of random numbers on the CPU engine, for the measures that compare it with a peer.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/engine/cpu/cpu_engine.hpp"
#include "tests/bench/measure.hpp"

namespace goblin::bench {

template <typename T>
struct SquareProduct {
    explicit SquareProduct(int64_t side);
    void run_ours() { engine->product(operands, {}); }
    // Throws when one of `samples` random elements hasn't the contract's bits.
    void expect_exact(int samples) const;

    std::unique_ptr<CpuEngine> engine = make_cpu_engine();
    int64_t n;
    std::vector<T> a, b, ours, peers;
    ProductOperands operands;
};

// The whole measure: ours beside `peers_product`, which computes a · b into peers.
template <typename T>
Measurement beside_peer(SquareProduct<T>& product, int pairs, const std::string& peer,
                        const std::function<void()>& peers_product);

extern template struct SquareProduct<float>;
extern template struct SquareProduct<double>;

}  // namespace goblin::bench
