// Products of random shapes, strides and values: every vector target and thread count gives the reference's
// bits, and writes nothing beside the result.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/arithmetic/product.hpp"
#include "core/engine/cpu/blocked_product.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/reference/reference_engine.hpp"

namespace goblin {
namespace {

using Random = std::mt19937_64;

int64_t below(Random& random, int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}

// Lengths near everything that could matter: nothing, one, tiles of all vector targets, chunks.
int64_t random_length(Random& random, int64_t most) {
    static constexpr int64_t turning_points[] = {0, 1, 2, 4, 6, 8, 12, 16, 32, 64, 240, 256, 512, 4096, 8192};
    const int64_t near = turning_points[below(random, std::size(turning_points))] + below(random, 3) - 1;
    const int64_t any = below(random, 100);
    return std::clamp<int64_t>(below(random, 2) == 0 ? near : any, 0, most);
}

// Any bits at all, or numbers of one kind, so that sums neither drown in NaN nor stay tame.
enum class Kind { any_bits, small_integers, unit, huge_and_tiny, subnormal, mostly_zero, specials, count };

template <typename T>
T random_float(Random& random, Kind kind) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
    const auto bits = static_cast<Bits>(random());
    const T unit =
        std::ldexp(static_cast<T>(bits >> (sizeof(T) * 8 - mantissa_bits)), -mantissa_bits) - T(0.5);
    switch (kind) {
        case Kind::any_bits:
            return std::bit_cast<T>(bits);
        case Kind::small_integers:
            return static_cast<T>(below(random, 17) - 8);
        case Kind::unit:
            return unit;
        case Kind::huge_and_tiny:
            return std::ldexp(unit, static_cast<int>(below(random, 200)) - 100);
        case Kind::subnormal:
            return std::ldexp(unit, std::numeric_limits<T>::min_exponent / 2 - 8);
        case Kind::mostly_zero:
            return below(random, 4) == 0 ? unit : std::copysign(T(0), unit);
        default:
            break;
    }
    static constexpr T specials[] = {T(0),
                                     -T(0),
                                     T(1),
                                     T(-1),
                                     std::numeric_limits<T>::infinity(),
                                     -std::numeric_limits<T>::infinity(),
                                     std::numeric_limits<T>::max(),
                                     std::numeric_limits<T>::denorm_min(),
                                     std::numeric_limits<T>::quiet_NaN()};
    return below(random, 8) == 0 ? specials[below(random, std::size(specials))] : unit;
}

template <typename T>
std::vector<T> random_values(Random& random, int64_t count) {
    const auto kind = static_cast<Kind>(below(random, static_cast<int64_t>(Kind::count)));
    std::vector<T> values(static_cast<size_t>(count));
    for (T& value : values)
        if constexpr (std::is_floating_point_v<T>)
            value = random_float<T>(random, kind);
        else
            value = static_cast<T>(random());
    return values;
}

// A vector target with every number of threads, once as the engine cuts products, once cut at random.
struct Participant {
    static constexpr unsigned most_threads = 4;
    explicit Participant(const std::string& name) : target(name), kernels(product_kernels(name)) {
        for (unsigned threads = 1; threads <= most_threads; ++threads) {
            engines.push_back(make_cpu_engine({.threads = threads, .vector_target = name}));
            pools.push_back(std::make_unique<ThreadPool>(threads));
        }
    }

    std::string target;
    ProductKernels kernels;
    std::vector<std::unique_ptr<CpuEngine>> engines;
    std::vector<std::unique_ptr<ThreadPool>> pools;
};

ProductBlocking random_blocking(Random& random, const ProductKernel& kernel, int64_t depth) {
    const auto few = [&](int64_t unit) { return (1 + below(random, 4)) * unit; };
    ProductBlocking blocking;
    blocking.block_rows = few(kernel.tile_rows);
    blocking.block_columns = few(kernel.tile_columns);
    blocking.block_depth = std::min(product_chunk_length, depth + depth % kernel.depth_group);
    blocking.panel_depth = few(below(random, 2) == 0 ? kernel.depth_group : 500);
    blocking.unit_rows = few(kernel.tile_rows);
    blocking.unit_columns = few(kernel.tile_columns);
    return blocking;
}

void product_cut_at_random(Random& random, const ProductKernel& kernel, ThreadPool& pool,
                           const ProductOperands& p) {
    const ProductBlocking blocking = random_blocking(random, kernel, p.depth);
    Workspace workspace;
    std::byte* memory = workspace.reserve(workspace_bytes(blocking, kernel, pool.threads()));
    blocked_product(p, kernel, blocking, pool, memory, {});
}

template <typename T>
ProductOperands random_product(Random& random) {
    constexpr int64_t most_multiplications = 1 << 18;
    ProductOperands p;
    p.dtype = dtype_of<T>();
    p.rows = random_length(random, 600);
    p.columns = random_length(random, 600);
    const int64_t elements = std::max<int64_t>(1, p.rows * p.columns);
    p.depth = random_length(random, std::max<int64_t>(1, most_multiplications / elements));
    p.a_stride = p.depth + below(random, 3);
    p.b_stride = p.columns + below(random, 3);
    p.c_stride = p.columns + below(random, 3);
    return p;
}

template <typename T>
bool products_agree(Random& random, const std::vector<Participant>& participants) {
    ProductOperands p = random_product<T>(random);
    const auto a = random_values<T>(random, p.rows * p.a_stride);
    const auto b = random_values<T>(random, p.depth * p.b_stride);
    p.a = a.data();
    p.b = b.data();

    using Result = ProductOf<T>;
    const std::vector<Result> untouched(static_cast<size_t>(p.rows * p.c_stride), Result{77});
    std::vector<Result> expected = untouched;
    p.c = expected.data();
    reference_product(p, {});

    const auto agrees = [&](const std::string& who, auto&& product) {
        std::vector<Result> found = untouched;
        p.c = found.data();
        product();
        if (std::ranges::equal(std::as_bytes(std::span(found)), std::as_bytes(std::span(expected))))
            return true;
        fmt::print("{}: {} [{}, {}] x [{}, {}] with strides {}, {}, {} differs from the reference\n", who,
                   name_of(p.dtype), p.rows, p.depth, p.depth, p.columns, p.a_stride, p.b_stride, p.c_stride);
        return false;
    };
    for (const Participant& participant : participants) {
        const ProductKernel* kernel = participant.kernels.of(p.dtype);
        if (kernel == nullptr) continue;
        const auto some = static_cast<size_t>(below(random, Participant::most_threads));
        const std::string who = fmt::format("{} with {} threads", participant.target, some + 1);
        if (!agrees(who, [&] { participant.engines[some]->product(p, {}); })) return false;
        if (!agrees(who + ", cut at random",
                    [&] { product_cut_at_random(random, *kernel, *participant.pools[some], p); }))
            return false;
    }
    return true;
}

int run(uint64_t seed, int rounds) {
    fmt::print("seed {}\n", seed);
    Random random(seed);
    std::vector<Participant> participants;
    for (const std::string& target : cpu_vector_targets()) participants.emplace_back(target);
    for (int round = 0; round < rounds; ++round) {
        const bool agree =
            products_agree<float>(random, participants) && products_agree<double>(random, participants) &&
            products_agree<int32_t>(random, participants) && products_agree<int64_t>(random, participants) &&
            products_agree<int8_t>(random, participants) && products_agree<uint8_t>(random, participants);
        if (!agree) return 1;
    }
    fmt::print("{} rounds agree on {}\n", rounds, fmt::join(cpu_vector_targets(), ", "));
    return 0;
}

}  // namespace
}  // namespace goblin

int main(int argc, char** argv) {
    constexpr int default_rounds = 40;
    return goblin::run(argc > 1 ? std::stoull(argv[1]) : std::random_device{}(),
                       argc > 2 ? std::stoi(argv[2]) : default_rounds);
}
