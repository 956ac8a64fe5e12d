// The table of all measures.
#include <array>

#include "tests/bench/measure.hpp"

namespace goblin::bench {

namespace {
constexpr std::array table = {
    Measure{"product_f32_n4096", "f32 product of 4096 x 4096 matrices on all processors, beside oneDNN",
            product_f32_n4096},
    Measure{"product_f64_n2048", "f64 product of 2048 x 2048 matrices on all processors, beside OpenBLAS",
            product_f64_n2048},
    Measure{"product_check", "cost of the product check as a share of the product it checks, f32, n = 4096",
            product_check},
    Measure{"verified_product_8192",
            "f32 product under policy product, lab node and one contributor, beside the engine alone",
            verified_product_8192},
    Measure{"verified_product_redundant",
            "the same under policy redundant with two contributors, beside half the engine alone",
            verified_product_redundant},
    Measure{"small_tasks", "verified tasks a second: 16 f32 in and out, two replicas, 32 volunteers over TLS",
            small_tasks},
    Measure{"product_memory", "peak memory of the lab node for a product with operands of 2 GiB",
            product_memory},
};
}  // namespace

std::span<const Measure> all_measures() {
    return table;
}

}  // namespace goblin::bench
