// Multiply-adds in registers, compiled for every vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h first: it includes this file again for every target
#include <hwy/highway.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/bench/peak.hpp"

HWY_BEFORE_NAMESPACE();
namespace goblin::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains hide an fma's latency on all processors we know, and fit 16 registers.
constexpr int chains = 12;

// Returns the operations done; `sink` keeps the compiler from leaving them out.
template <typename T>
double spin(int64_t rounds, T* sink) {
    const hn::ScalableTag<T> d;
    const auto factor = hn::Set(d, static_cast<T>(*sink));
    hn::Vec<decltype(d)> acc[chains];
    for (int chain = 0; chain < chains; ++chain) acc[chain] = hn::Set(d, static_cast<T>(chain));
    for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
        for (int chain = 0; chain < chains; ++chain) acc[chain] = hn::MulAdd(acc[chain], factor, factor);
    auto sum = acc[0];
    for (int chain = 1; chain < chains; ++chain) sum = hn::Add(sum, acc[chain]);
    *sink = hn::GetLane(sum);
    return HWY_NATIVE_FMA * 2.0 * static_cast<double>(rounds) * chains * static_cast<double>(hn::Lanes(d));
}

double spin_f32(int64_t rounds, float* sink) {
    return spin(rounds, sink);
}
double spin_f64(int64_t rounds, double* sink) {
    return spin(rounds, sink);
}

}  // namespace HWY_NAMESPACE
}  // namespace goblin::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace goblin::bench {

HWY_EXPORT(spin_f32);
HWY_EXPORT(spin_f64);

namespace {

constexpr int tries = 12;
constexpr int64_t rounds = 2'000'000;

template <typename Spin, typename T>
double peak_gflops(unsigned threads, Spin spin, T half) {
    using Clock = std::chrono::steady_clock;
    double best = 0;
    for (int attempt = 0; attempt < tries; ++attempt) {
        std::barrier together(threads);
        std::vector<std::thread> spinners;
        std::vector<Clock::time_point> starts(threads), ends(threads);
        std::vector<double> operations(threads);
        for (unsigned thread = 0; thread < threads; ++thread)
            spinners.emplace_back([&, thread] {
                T sink = half;
                spin(rounds / 10, &sink);
                together.arrive_and_wait();
                starts[thread] = Clock::now();
                operations[thread] = spin(rounds, &sink);
                ends[thread] = Clock::now();
            });
        for (std::thread& spinner : spinners) spinner.join();
        const std::chrono::duration<double> elapsed =
            *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
        const double total = std::accumulate(operations.begin(), operations.end(), 0.0);
        best = std::max(best, total / elapsed.count() / 1e9);
    }
    return best;
}

}  // namespace

double peak_gflops_f32(unsigned threads) {
    return peak_gflops(
        threads, [](int64_t n, float* sink) { return HWY_DYNAMIC_DISPATCH(spin_f32)(n, sink); }, 0.5f);
}
double peak_gflops_f64(unsigned threads) {
    return peak_gflops(
        threads, [](int64_t n, double* sink) { return HWY_DYNAMIC_DISPATCH(spin_f64)(n, sink); }, 0.5);
}

}  // namespace goblin::bench
#endif  // HWY_ONCE
