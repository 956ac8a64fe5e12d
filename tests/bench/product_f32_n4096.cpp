// product_f32_n4096: the CPU engine beside oneDNN's dnnl_sgemm.
#include "tests/bench/measure.hpp"

#if GOBLIN_HAS_DNNL

#include <fmt/core.h>
#include <oneapi/dnnl/dnnl.h>

#include "tests/bench/product_bench.hpp"

namespace goblin::bench {

Measurement product_f32_n4096() {
    SquareProduct<float> product(4096);
    const int64_t n = product.n;
    const dnnl_version_t* version = dnnl_version();
    return beside_peer<float>(
        product, 9, fmt::format("oneDNN {}.{} dnnl_sgemm", version->major, version->minor), [&] {
            const dnnl_status_t status = dnnl_sgemm('N', 'N', n, n, n, 1, product.a.data(), n,
                                                    product.b.data(), n, 0, product.peers.data(), n);
            if (status != dnnl_success)
                throw std::runtime_error(fmt::format("dnnl_sgemm returned {}", int{status}));
        });
}

}  // namespace goblin::bench

#else

namespace goblin::bench {
Measurement product_f32_n4096() {
    throw Skipped(
        "oneDNN's development files were not found when this was configured; install libdnnl-dev and "
        "configure again");
}
}  // namespace goblin::bench

#endif
