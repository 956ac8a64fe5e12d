// The table of known answers, made by the reference engine.
#include "core/engine/self_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/arithmetic/float_environment.hpp"
#include "core/arithmetic/product.hpp"
#include "core/error.hpp"

namespace goblin {

bool SelfTestReport::takes_products_of(DType operand) const {
    return std::find(exact_products.begin(), exact_products.end(), operand) != exact_products.end();
}

namespace {

// A product of one row and one column that goes wrong where one capability is missing.
template <typename T>
struct Probe {
    const char* lacking;  // what a wrong answer means
    std::vector<T> row;
    std::vector<T> column;
    ProductOf<T> answer;
};

template <typename T>
std::vector<T> with(size_t length, std::initializer_list<std::pair<size_t, T>> values) {
    std::vector<T> all(length, T(0));
    for (const auto& [index, value] : values) all[index] = value;
    return all;
}

template <std::floating_point T>
std::vector<Probe<T>> probes() {
    using Limits = std::numeric_limits<T>;
    constexpr int digits = Limits::digits;  // 24 or 53
    const auto two_to = [](int exponent) { return std::ldexp(T(1), exponent); };
    const T ulp = Limits::epsilon();
    const T tiny = Limits::denorm_min();
    const T infinity = Limits::infinity();
    const T nan = canonical_nan<T>();
    const int half = (digits + 1) / 2;
    const auto chunk = static_cast<size_t>(product_chunk_length);
    return {
        {"has no fused multiply-add",
         {T(-1), 1 + two_to(-half)},
         {1 + two_to(1 - half), 1 + two_to(-half)},
         two_to(-2 * half)},
        {"does not round halves to even downwards", {T(1), ulp}, {T(1), T(0.5)}, T(1)},
        {"does not round halves to even upwards", {1 + ulp, ulp}, {T(1), T(0.5)}, 1 + 2 * ulp},
        {"does not round negative numbers to the nearest", {T(-1), ulp}, {T(1), T(-0.75)}, -1 - ulp},
        {"flushes results that are subnormal to zero", {Limits::min()}, {3 * ulp}, 3 * tiny},
        {"reads subnormal numbers as zero", {3 * tiny}, {two_to(digits)}, 3 * tiny * two_to(digits)},
        {"does not overflow to infinity", {Limits::max()}, {T(2)}, infinity},
        {"has no infinity that stays in a sum", {-infinity, T(1)}, {T(1), T(1)}, -infinity},
        {"does not give the contract's NaN for infinity times zero", {infinity}, {T(0)}, nan},
        {"does not give the contract's NaN for a NaN", {-nan, T(1)}, {T(1), T(1)}, nan},
        {"gives -0 for a product of -0", {T(-0.0)}, {T(1)}, T(0)},
        {"gives -0 for a negative product that underflows", {-tiny}, {tiny}, T(0)},
        {"does not start a new sum after 4096 products",
         with<T>(chunk + 2, {{0, two_to(digits)}, {chunk, T(1)}, {chunk + 1, T(1)}}),
         std::vector<T>(chunk + 2, T(1)), two_to(digits) + 2},
        {"does not give +0 for a sum of nothing", {}, {}, T(0)},
    };
}

template <std::integral T>
std::vector<Probe<T>> probes() {
    return {};  // integers have no modes; the shapes below hold their extremes
}

// Products of odd shapes and pseudo-random values, by a checksum of the result's bytes.
struct KnownProduct {
    DType operand;
    int64_t rows, depth, columns;
    uint64_t checksum;
};

// clang-format off
constexpr KnownProduct known_products[] = {
    {DType::f32, 1, 1, 1, 0xc432468aa7e4185b},
    {DType::f32, 29, 4200, 37, 0xc93ccfd8b43ac5ad},
    {DType::f32, 3, 8193, 35, 0xedb101beffa4faca},
    {DType::f32, 130, 7, 259, 0x02e51f6d9dbd2b33},
    {DType::f64, 1, 1, 1, 0x041c4ed378f82efc},
    {DType::f64, 29, 4200, 37, 0x9723e1a50ab9d373},
    {DType::f64, 3, 8193, 35, 0xdd8d702e8f7952a5},
    {DType::f64, 130, 7, 259, 0x67c83c6e25ee5b3e},
    {DType::i32, 29, 4200, 37, 0xcc5c7b46076ffb20},
    {DType::i64, 29, 4200, 37, 0x189b215406d007db},
    {DType::i8, 29, 4201, 37, 0x8608ba9fb39095a4},
    {DType::i8, 130, 7, 259, 0x5b22932ff1965e18},
    {DType::u8, 29, 4201, 37, 0x27ebd7325f6e8fb2},
    {DType::u8, 130, 7, 259, 0xfa4e45bc85095db5},
};
// clang-format on

// FNV-1a, 64 bits.
uint64_t checksum_of(std::span<const std::byte> bytes) {
    uint64_t checksum = 0xcbf29ce484222325;
    for (const std::byte byte : bytes) {
        checksum ^= static_cast<uint64_t>(byte);
        checksum *= 0x100000001b3;
    }
    return checksum;
}

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// Floats of many magnitudes, one in sixteen subnormal; integers of any bits.
template <typename T>
T known_value(uint64_t random) {
    if constexpr (std::is_floating_point_v<T>) {
        const int shift = 64 - std::numeric_limits<T>::digits;
        const T fraction = std::ldexp(static_cast<T>(static_cast<int64_t>(random) >> shift), -62 + shift);
        const auto choice = static_cast<int>(random & 15);
        return std::ldexp(fraction, choice == 0 ? std::numeric_limits<T>::min_exponent - 4 : choice - 8);
    } else {
        return static_cast<T>(random >> 32 ^ random);
    }
}

template <typename T>
Tensor known_operand(int64_t rows, int64_t columns, uint64_t seed) {
    Tensor tensor(dtype_of<T>(), Shape{rows, columns});
    for (T& value : tensor.as<T>()) value = known_value<T>(next_random(seed));
    return tensor;
}

// The engine's product, or what it says instead.
struct Answer {
    std::optional<Tensor> product;
    std::string refusal;
};

Answer ask(Engine& engine, Tensor a, Tensor b, const RunControl& control) {
    const Graph graph = product_graph(a.spec(), b.spec());
    try {
        if (auto reason = engine.why_not(graph)) return {std::nullopt, *reason};
        Tensor inputs[] = {std::move(a), std::move(b)};
        return {std::move(engine.run(graph, inputs, control).at(0)), {}};
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::cancelled) throw;
        return {std::nullopt, error.what()};
    }
}

class Examination {
  public:
    Examination(Engine& engine, const RunControl& control) : engine_(engine), control_(control) {}

    SelfTestReport take() {
        for (const DTypeInfo& info : all_dtypes())
            if (info.dtype != DType::boolean)
                with_product_type(info.dtype, [&](auto zero) { examine<decltype(zero)>(); });
        return std::move(report_);
    }

  private:
    template <typename T>
    void examine() {
        const size_t lacking_before = report_.lacking.size();
        if (accepts<T>()) {
            for (const Probe<T>& probe : probes<T>()) try_probe(probe);
            if (report_.lacking.size() == lacking_before)
                for (const KnownProduct& known : known_products)
                    if (known.operand == dtype_of<T>()) try_known<T>(known);
        }
        if (report_.lacking.size() == lacking_before) report_.exact_products.push_back(dtype_of<T>());
    }

    template <typename T>
    bool accepts() {
        const Answer answer =
            ask(engine_, Tensor(dtype_of<T>(), {1, 1}), Tensor(dtype_of<T>(), {1, 1}), control_);
        if (!answer.product) lacks<T>(answer.refusal);
        return answer.product.has_value();
    }

    template <typename T>
    void try_probe(const Probe<T>& probe) {
        const auto depth = static_cast<int64_t>(probe.row.size());
        const Answer answer = ask(engine_, Tensor::of<T>({1, depth}, probe.row),
                                  Tensor::of<T>({depth, 1}, probe.column), control_);
        if (!answer.product)
            lacks<T>(answer.refusal);
        else if (!answer.product->same_bits(Tensor::of<ProductOf<T>>({1, 1}, std::span(&probe.answer, 1))))
            lacks<T>(probe.lacking);
    }

    template <typename T>
    void try_known(const KnownProduct& known) {
        const Answer answer = ask(engine_, known_operand<T>(known.rows, known.depth, 1),
                                  known_operand<T>(known.depth, known.columns, 2), control_);
        if (!answer.product)
            lacks<T>(answer.refusal);
        else if (checksum_of(answer.product->bytes()) != known.checksum)
            lacks<T>(fmt::format("gives wrong bits in a product [{}, {}] x [{}, {}]", known.rows, known.depth,
                                 known.depth, known.columns));
    }

    template <typename T>
    void lacks(const std::string& what) {
        report_.lacking.push_back(fmt::format("{}: {}", name_of(dtype_of<T>()), what));
    }

    Engine& engine_;
    const RunControl& control_;
    SelfTestReport report_;
};

}  // namespace

SelfTestReport self_test(Engine& engine, const RunControl& control) {
    const FloatEnvironment environment;  // for the probes' own numbers
    return Examination(engine, control).take();
}

}  // namespace goblin
