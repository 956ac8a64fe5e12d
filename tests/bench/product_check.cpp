// product_check: what the product check costs, as a share of the product it checks.
#include "core/check/product_check.hpp"

#include <fmt/core.h>

#include "tests/bench/measure.hpp"
#include "tests/bench/product_bench.hpp"
#include "tests/bench/side_by_side.hpp"

namespace goblin::bench {

Measurement product_check() {
    SquareProduct<float> product(4096);
    product.run_ours();
    const int64_t n = product.n;
    const MemoryMatrix a(DType::f32, n, n, product.a.data(), n);
    const MemoryMatrix b(DType::f32, n, n, product.b.data(), n);
    const MemoryMatrix c(DType::f32, n, n, product.ours.data(), n);
    ProductChecker checker(product.engine->threads());
    int checks = 0;
    int64_t rows_recomputed = 0;
    ProductVerdict verdict;
    const auto check = [&] {
        verdict = checker.check(a, b, c);
        if (!verdict.accepted()) throw std::runtime_error("the check convicted an honest product");
        ++checks;
        rows_recomputed += verdict.rows_recomputed;
    };
    constexpr int pairs = 16;
    const SideBySide times = time_side_by_side(pairs, check, [&] { product.run_ours(); });
    return {.value = 1 / times.ratio,
            .unit = "of the product",
            .peer = {},
            .peer_value = {},
            .ratio = {},
            .note = fmt::format(
                "{} threads; {:.1f} ms for a product of {:.0f} ms; errors above {:.1g} of a row's and a "
                "column's norm escape with 1e-6; {} checks recomputed {} rows; median of {} pairs",
                product.engine->threads(), times.ours_s * 1e3, times.peers_s * 1e3, verdict.relative_bound,
                checks, rows_recomputed, pairs)};
}

}  // namespace goblin::bench
