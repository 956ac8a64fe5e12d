// Whole verified products, lab node and contributors on this machine, beside the engine alone.
#include <fmt/core.h>
#include <algorithm>
#include <chrono>

#include "core/engine/cpu/cpu_engine.hpp"
#include "tests/bench/bench_lab.hpp"
#include "tests/bench/measure.hpp"

namespace goblin::bench {

namespace {

constexpr int64_t side = 8192;
constexpr double gflop = 2.0 * side * side * side / 1e9;
constexpr int pairs = 3;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

class EngineAlone {
  public:
    EngineAlone()
        : a_(DType::f32, Shape{side, side}),
          b_(DType::f32, Shape{side, side}),
          c_(DType::f32, Shape{side, side}) {
        std::fill(a_.as<float>().begin(), a_.as<float>().end(), 1.25F);
        std::fill(b_.as<float>().begin(), b_.as<float>().end(), -0.75F);
    }
    double product_s() {
        const auto start = std::chrono::steady_clock::now();
        engine_->product({DType::f32, side, side, side, a_.bytes().data(), side, b_.bytes().data(), side,
                          c_.bytes().data(), side},
                         {});
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

  private:
    std::unique_ptr<CpuEngine> engine_ = make_cpu_engine();
    Tensor a_, b_, c_;
};

// `share`: of the engine's speed, which is what the policy leaves at best.
Measurement beside_engine(BenchLab lab, const std::string& policy, double share, const std::string& peer) {
    const auto a = lab.matrix("a", side, side);
    const auto b = lab.matrix("b", side, side);
    EngineAlone engine;
    std::vector<double> ours, peers, ratios;
    for (int pair = 0; pair < pairs; ++pair) {
        ours.push_back(gflop / lab.product_s(a, b, policy));
        peers.push_back(gflop / engine.product_s() * share);
        ratios.push_back(ours.back() / peers.back());
    }
    lab.expect_exact(a, b, 20);
    return {
        median(ours),
        "GFLOP/s",
        peer,
        median(peers),
        median(ratios),
        fmt::format(
            "from submission to the complete, verified file; checks, and transfers over TLS included: the "
            "operands in the first of {} pairs, whose ratio is {:.2f} (contributors keep them), the "
            "product in all",
            pairs, ratios.front())};
}

}  // namespace

Measurement verified_product_8192() {
    return beside_engine(BenchLab({std::vector<std::string>{"--name", "bench", "--memory", "4GiB"}}),
                         "product", 1, "engine alone");
}

Measurement verified_product_redundant() {
    const std::vector<std::string> one_core = {"--cpu-threads", "1", "--memory", "4GiB"};
    return beside_engine(BenchLab({one_core, one_core}), "redundant", 0.5, "half the engine alone");
}

}  // namespace goblin::bench
