// What a product of large operands takes of the lab node's memory.
#include "tests/bench/bench_lab.hpp"
#include "tests/bench/measure.hpp"

namespace goblin::bench {

Measurement product_memory() {
    constexpr int64_t edge = 4096;
    constexpr int64_t depth = 131'072;  // 2 GiB each
    using Options = std::vector<std::string>;
    BenchLab lab({Options{"--memory", "512MiB"}});
    const auto a = lab.matrix("a", edge, depth);
    const auto b = lab.matrix("b", depth, edge);
    const double seconds = lab.product_s(a, b, "product");
    lab.expect_exact(a, b, 20);
    const double megabytes = static_cast<double>(lab.lab_peak_bytes()) / 1e6;
    return {
        megabytes,
        "MB",
        {},
        {},
        {},
        fmt::format(
            "peak resident memory of the lab node, operands of 2 GiB, a contributor with 512 MiB; {:.0f} s",
            seconds)};
}

}  // namespace goblin::bench
