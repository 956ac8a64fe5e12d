// product_f64_n2048: the CPU engine beside OpenBLAS's dgemm, with the kernel that it chooses for this
// machine.
#include "tests/bench/measure.hpp"

#if GOBLIN_HAS_CBLAS

#include <cblas.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>

#include "tests/bench/product_bench.hpp"

namespace goblin::bench {

namespace {

template <typename Function>
Function* symbol(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == nullptr)
        throw Skipped(fmt::format("OpenBLAS has no {}; install libopenblas0-pthread", name));
    return reinterpret_cast<Function*>(found);
}

// Loaded here rather than linked, because it reads its environment once, when it is loaded.
void* load_openblas() {
    for (const char* setting : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS",
                                "GOTO_NUM_THREADS", "OMP_NUM_THREADS"})
        unsetenv(setting);
    for (const char* file : {GOBLIN_OPENBLAS_FILE, "libopenblas.so.0"})
        if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    throw Skipped(fmt::format("OpenBLAS could not be loaded ({}); install libopenblas0-pthread", dlerror()));
}

}  // namespace

Measurement product_f64_n2048() {
    void* openblas = load_openblas();
    auto* dgemm = symbol<decltype(cblas_dgemm)>(openblas, "cblas_dgemm");
    auto* set_threads = symbol<decltype(openblas_set_num_threads)>(openblas, "openblas_set_num_threads");
    auto* core_name = symbol<decltype(openblas_get_corename)>(openblas, "openblas_get_corename");
    SquareProduct<double> product(2048);
    const auto n = static_cast<int>(product.n);
    set_threads(static_cast<int>(product.engine->threads()));
    return beside_peer<double>(product, 15, fmt::format("OpenBLAS dgemm, kernel {}", core_name()), [&] {
        dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, product.a.data(), n, product.b.data(), n,
              0, product.peers.data(), n);
    });
}

}  // namespace goblin::bench

#else

namespace goblin::bench {
Measurement product_f64_n2048() {
    throw Skipped(
        "OpenBLAS's cblas.h was not found when this was configured; install libopenblas-dev and "
        "configure again");
}
}  // namespace goblin::bench

#endif
