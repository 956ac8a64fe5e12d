// A square product of random numbers on the CPU engine.
#include "tests/bench/product_bench.hpp"

#include <bit>
#include <cmath>

#include "core/arithmetic/float_environment.hpp"
#include "core/arithmetic/product.hpp"
#include "core/error.hpp"
#include "tests/bench/peak.hpp"
#include "tests/bench/side_by_side.hpp"

namespace goblin::bench {

template <typename T>
SquareProduct<T>::SquareProduct(int64_t side) : n(side) {
    std::mt19937_64 random(side);
    std::normal_distribution<T> normal;
    for (std::vector<T>* matrix : {&a, &b, &ours, &peers}) matrix->resize(static_cast<size_t>(n * n));
    for (T& value : a) value = normal(random);
    for (T& value : b) value = normal(random);
    operands = {.dtype = dtype_of<T>(),
                .rows = n,
                .depth = n,
                .columns = n,
                .a = a.data(),
                .a_stride = n,
                .b = b.data(),
                .b_stride = n,
                .c = ours.data(),
                .c_stride = n};
}

template <typename T>
void SquareProduct<T>::expect_exact(int samples) const {
    const FloatEnvironment environment;
    std::mt19937_64 random(1);
    for (int sample = 0; sample < samples; ++sample) {
        const auto row = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
        const auto column = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
        const T exact = product_element<T>({&a[row * n], 1}, {&b[column], n}, n);
        const T found = ours[row * n + column];
        if (std::memcmp(&exact, &found, sizeof(T)) != 0)
            throw Error(ErrorKind::failed, "expected {} at [{}, {}] of the product, found {}", exact, row,
                        column, found);
    }
}

template <typename T>
Measurement beside_peer(SquareProduct<T>& product, int pairs, const std::string& peer,
                        const std::function<void()>& peers_product) {
    const SideBySide times = time_side_by_side(
        pairs, [&] { product.run_ours(); }, peers_product);
    product.expect_exact(1000);
    const auto side = static_cast<double>(product.n);
    const double gflop = 2 * side * side * side / 1e9;
    const unsigned threads = product.engine->threads();
    const double peak = sizeof(T) == 4 ? peak_gflops_f32(threads) : peak_gflops_f64(threads);
    return {
        .value = gflop / times.ours_s,
        .unit = "GFLOP/s",
        .peer = peer,
        .peer_value = gflop / times.peers_s,
        .ratio = times.ratio,
        .note = fmt::format("{} threads, {}; 1000 elements have the contract's bits; at best {:.0f} % of the "
                            "{:.0f} GFLOP/s that fma in registers reaches; median of {} pairs",
                            threads, product.engine->vector_target(), 100 * gflop / times.best_ours_s / peak,
                            peak, pairs)};
}

template struct SquareProduct<float>;
template struct SquareProduct<double>;
template Measurement beside_peer(SquareProduct<float>&, int, const std::string&,
                                 const std::function<void()>&);
template Measurement beside_peer(SquareProduct<double>&, int, const std::string&,
                                 const std::function<void()>&);

}  // namespace goblin::bench
