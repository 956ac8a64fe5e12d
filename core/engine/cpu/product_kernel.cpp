// The vectorised inner parts of a product, compiled once per vector target by Highway's foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/engine/cpu/product_kernel.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h first: it includes this file again for every target
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/arithmetic/product.hpp"
#include "core/engine/cpu/product_kernel.hpp"
#include "core/error.hpp"

HWY_BEFORE_NAMESPACE();
namespace goblin {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Where there are 32 vector registers, 24 hold a tile and 2 a row of B; where there are 16, 12 and 2.
#if (HWY_ARCH_X86 && HWY_MAX_BYTES == 64) || HWY_ARCH_ARM_A64
constexpr int64_t tile_rows = 12;
#else
constexpr int64_t tile_rows = 6;
#endif

// How elements are packed and multiplied: as themselves …
template <typename T, typename OperandT = T>
struct Plain {
    using Operand = OperandT;
    using Packed = T;
    using Result = T;
    static constexpr int64_t group = 1;
    using D = hn::ScalableTag<T>;
    using V = hn::Vec<D>;

    static HWY_INLINE V broadcast(const Packed* a) { return hn::Set(D(), *a); }
    static HWY_INLINE V load(const Packed* b) { return hn::Load(D(), b); }
    static HWY_INLINE V multiply_add(V a, V b, V acc) {
        if constexpr (std::is_floating_point_v<T>)
            return hn::MulAdd(a, b, acc);
        else
            return hn::Add(acc, hn::Mul(a, b));
    }
};

#if HWY_TARGET == HWY_SCALAR
template <typename OperandT>
using EightBit = Plain<int32_t, OperandT>;
#else
// … or as pairs of 16-bit integers, two products being added at once: exact, since |a·b| ≤ 255².
template <typename OperandT>
struct EightBit {
    using Operand = OperandT;
    using Packed = int16_t;
    using Result = int32_t;
    static constexpr int64_t group = 2;
    using D = hn::ScalableTag<int32_t>;
    using D16 = hn::Repartition<int16_t, D>;
    using V = hn::Vec<D>;

    static HWY_INLINE V broadcast(const Packed* a) {
        int32_t pair;
        std::memcpy(&pair, a, sizeof(pair));
        return hn::Set(D(), pair);
    }
    static HWY_INLINE V load(const Packed* b) { return hn::BitCast(D(), hn::Load(D16(), b)); }
    static HWY_INLINE V multiply_add(V a, V b, V acc) {
        V odd = hn::Zero(D());
        const V even = hn::ReorderWidenMulAccumulate(D(), hn::BitCast(D16(), a), hn::BitCast(D16(), b),
                                                     hn::Zero(D()), odd);
        return hn::Add(acc, hn::RearrangeToOddPlusEven(even, odd));
    }
};
#endif

template <typename Lanes>
int64_t tile_columns() {
    return 2 * static_cast<int64_t>(hn::Lanes(typename Lanes::D()));
}

template <typename Lanes>
void pack_a(const void* a, int64_t a_stride, int64_t rows, int64_t depth, void* panel) noexcept {
    const auto* from = static_cast<const typename Lanes::Operand*>(a);
    auto* to = static_cast<typename Lanes::Packed*>(panel);
    constexpr int64_t group = Lanes::group;
    const int64_t groups = (depth + group - 1) / group;
    for (int64_t row = 0; row < tile_rows; ++row)
        for (int64_t k = 0; k < groups * group; ++k)
            to[(k / group * tile_rows + row) * group + k % group] =
                row < rows && k < depth ? static_cast<typename Lanes::Packed>(from[row * a_stride + k]) : 0;
}

template <typename Lanes>
void pack_b(const void* b, int64_t b_stride, int64_t depth, int64_t columns, void* panels,
            int64_t panel_stride_bytes) noexcept {
    const auto* from = static_cast<const typename Lanes::Operand*>(b);
    constexpr int64_t group = Lanes::group;
    const int64_t width = tile_columns<Lanes>();
    const int64_t groups = (depth + group - 1) / group;
    for (int64_t first = 0; first < columns; first += width) {
        auto* to = reinterpret_cast<typename Lanes::Packed*>(static_cast<std::byte*>(panels) +
                                                             first / width * panel_stride_bytes);
        for (int64_t k = 0; k < groups * group; ++k)
            for (int64_t j = 0; j < width; ++j)
                to[(k / group * width + j) * group + k % group] =
                    first + j < columns && k < depth
                        ? static_cast<typename Lanes::Packed>(from[k * b_stride + first + j])
                        : 0;
    }
}

template <typename Lanes, int rows>
HWY_INLINE void multiply_rows(const typename Lanes::Packed* a, const typename Lanes::Packed* b,
                              int64_t groups, bool begin, typename Lanes::Result* tile) {
    using V = typename Lanes::V;
    const typename Lanes::D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    V left[rows];
    V right[rows];
    for (int row = 0; row < rows; ++row) {
        left[row] = begin ? hn::Zero(d) : hn::Load(d, tile + 2 * row * lanes);
        right[row] = begin ? hn::Zero(d) : hn::Load(d, tile + (2 * row + 1) * lanes);
    }
    for (int64_t k = 0; k < groups; ++k) {
        const V b_left = Lanes::load(b);
        const V b_right = Lanes::load(b + lanes * Lanes::group);
        for (int row = 0; row < rows; ++row) {
            const V a_row = Lanes::broadcast(a + row * Lanes::group);
            left[row] = Lanes::multiply_add(a_row, b_left, left[row]);
            right[row] = Lanes::multiply_add(a_row, b_right, right[row]);
        }
        a += tile_rows * Lanes::group;
        b += 2 * lanes * Lanes::group;
    }
    for (int row = 0; row < rows; ++row) {
        hn::Store(left[row], d, tile + 2 * row * lanes);
        hn::Store(right[row], d, tile + (2 * row + 1) * lanes);
    }
}

template <typename Lanes>
void multiply(const void* a_panel, const void* b_panel, int64_t depth, int64_t rows, bool begin,
              void* tile) noexcept {
    const auto* a = static_cast<const typename Lanes::Packed*>(a_panel);
    const auto* b = static_cast<const typename Lanes::Packed*>(b_panel);
    auto* to = static_cast<typename Lanes::Result*>(tile);
    const int64_t groups = depth / Lanes::group;
    switch (rows) {
        case 1:
            return multiply_rows<Lanes, 1>(a, b, groups, begin, to);
        case 2:
            return multiply_rows<Lanes, 2>(a, b, groups, begin, to);
        case 3:
            return multiply_rows<Lanes, 3>(a, b, groups, begin, to);
        case 4:
            return multiply_rows<Lanes, 4>(a, b, groups, begin, to);
        case 5:
            return multiply_rows<Lanes, 5>(a, b, groups, begin, to);
        case 6:
            return multiply_rows<Lanes, 6>(a, b, groups, begin, to);
        default:
            return multiply_rows<Lanes, tile_rows>(a, b, groups, begin, to);
    }
}

template <typename D>
HWY_INLINE void store_vector(D d, const hn::TFromD<D>* tile, bool first_chunk, bool last_chunk,
                             hn::TFromD<D>* c) {
    using T = hn::TFromD<D>;
    auto value = hn::Load(d, tile);
    if (!first_chunk) value = hn::Add(hn::LoadU(d, c), value);
    if constexpr (std::is_floating_point_v<T>) {
        if (last_chunk) {
            value = hn::Add(value, hn::Zero(d));
            value = hn::IfThenElse(hn::IsNaN(value), hn::Set(d, canonical_nan<T>()), value);
        }
    }
    hn::StoreU(value, d, c);
}

template <typename Lanes>
void store(const void* tile, int64_t rows, int64_t columns, bool first_chunk, bool last_chunk, void* c,
           int64_t c_stride) noexcept {
    using Result = typename Lanes::Result;
    const typename Lanes::D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto* from = static_cast<const Result*>(tile);
    auto* to = static_cast<Result*>(c);
    for (int64_t row = 0; row < rows; ++row, from += 2 * lanes, to += c_stride)
        for (int64_t j = 0; j < columns; j += lanes) {
            if (j + lanes <= columns) {
                store_vector(d, from + j, first_chunk, last_chunk, to + j);
            } else {
                HWY_ALIGN Result rest[hn::MaxLanes(typename Lanes::D())] = {};
                const auto bytes = static_cast<size_t>(columns - j) * sizeof(Result);
                std::memcpy(rest, to + j, bytes);
                store_vector(d, from + j, first_chunk, last_chunk, rest);
                std::memcpy(to + j, rest, bytes);
            }
        }
}

template <typename Lanes>
ProductKernel kernel() {
    return {.tile_rows = tile_rows,
            .tile_columns = tile_columns<Lanes>(),
            .depth_group = Lanes::group,
            .packed_element_bytes = sizeof(typename Lanes::Packed),
            .result_element_bytes = sizeof(typename Lanes::Result),
            .pack_a = pack_a<Lanes>,
            .pack_b = pack_b<Lanes>,
            .multiply = multiply<Lanes>,
            .store = store<Lanes>};
}

ProductKernels target_kernels() {
    return {.target = hwy::TargetName(HWY_TARGET),
            .fused = HWY_NATIVE_FMA != 0,
            .f32 = kernel<Plain<float>>(),
            .f64 = kernel<Plain<double>>(),
            .i32 = kernel<Plain<int32_t>>(),
            .i64 = kernel<Plain<int64_t>>(),
            .i8 = kernel<EightBit<int8_t>>(),
            .u8 = kernel<EightBit<uint8_t>>()};
}

}  // namespace HWY_NAMESPACE
}  // namespace goblin
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace goblin {

HWY_EXPORT(target_kernels);

const ProductKernel* ProductKernels::of(DType operand) const {
    switch (operand) {
        case DType::f32:
            return fused ? &f32 : nullptr;
        case DType::f64:
            return fused ? &f64 : nullptr;
        case DType::i32:
            return &i32;
        case DType::i64:
            return &i64;
        case DType::i8:
            return &i8;
        case DType::u8:
            return &u8;
        case DType::boolean:
            break;
    }
    return nullptr;
}

std::vector<std::string> vector_targets() {
    std::vector<std::string> names;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets())
        names.emplace_back(hwy::TargetName(target));
    return names;
}

namespace {

// Highway's choice of target is global to the process: forced for one call, then given back.
ProductKernels forced_kernels(int64_t target) {
    static std::mutex forcing;
    const std::lock_guard lock(forcing);
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ProductKernels kernels = HWY_DYNAMIC_DISPATCH(target_kernels)();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return kernels;
}

}  // namespace

ProductKernels product_kernels(const std::string& target) {
    if (target.empty()) return HWY_DYNAMIC_DISPATCH(target_kernels)();
    for (const int64_t candidate : hwy::SupportedAndGeneratedTargets())
        if (target == hwy::TargetName(candidate)) return forced_kernels(candidate);
    throw Error(ErrorKind::usage, "expected one of this processor's vector targets ({}), found '{}'",
                fmt::join(vector_targets(), ", "), target);
}

}  // namespace goblin
#endif  // HWY_ONCE
