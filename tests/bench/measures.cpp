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
};
}  // namespace

std::span<const Measure> all_measures() {
    return table;
}

}  // namespace goblin::bench
