// The vectorised inner parts of a product, compiled once per vector target by Highway's foreach_target.
#ifndef HWY_DISABLED_TARGETS
// Vectors whose length only the running processor knows can't be held in an array, as a tile is.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/engine/cpu/product_kernel.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h first: it includes this file again for every target
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

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
    // A vector's columns of one row of B.
    static HWY_INLINE void copy(const Operand* from, int64_t, Packed* to) {
        if constexpr (std::is_same_v<Operand, Packed>)
            hn::Store(hn::LoadU(D(), from), D(), to);
        else
            hn::Store(hn::PromoteTo(D(), hn::LoadU(hn::Rebind<Operand, D>(), from)), D(), to);
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
    // A vector's columns of two rows of B, the first row's elements in the lower halves of the pairs.
    static HWY_INLINE void copy(const Operand* from, int64_t stride, Packed* to) {
        const hn::Rebind<Operand, D> narrow;
        const V first = hn::PromoteTo(D(), hn::LoadU(narrow, from));
        const V second = hn::PromoteTo(D(), hn::LoadU(narrow, from + stride));
        const V pairs = hn::Or(hn::And(first, hn::Set(D(), 0xffff)), hn::ShiftLeft<16>(second));
        hn::Store(hn::BitCast(D16(), pairs), D16(), to);
    }
};
#endif

template <typename Lanes>
int64_t tile_columns() {
    return 2 * static_cast<int64_t>(hn::Lanes(typename Lanes::D()));
}

template <typename Lanes>
void pack_a(const void* a, int64_t a_stride, int64_t rows, int64_t depth, void* panel) noexcept {
    using Packed = typename Lanes::Packed;
    constexpr int64_t group = Lanes::group;
    const auto* from = static_cast<const typename Lanes::Operand*>(a);
    auto* to = static_cast<Packed*>(panel);
    const int64_t whole = rows == tile_rows ? depth / group * group : 0;
    for (int64_t k = 0; k < whole; k += group)
        for (int64_t row = 0; row < tile_rows; ++row)
            for (int64_t i = 0; i < group; ++i) *to++ = static_cast<Packed>(from[row * a_stride + k + i]);
    for (int64_t k = whole; k < depth; k += group)
        for (int64_t row = 0; row < tile_rows; ++row)
            for (int64_t i = 0; i < group; ++i)
                *to++ = row < rows && k + i < depth ? static_cast<Packed>(from[row * a_stride + k + i]) : 0;
}

template <typename Lanes>
void pack_b(const void* b, int64_t b_stride, int64_t depth, int64_t columns, void* panels,
            int64_t panel_stride_bytes) noexcept {
    using Packed = typename Lanes::Packed;
    constexpr int64_t group = Lanes::group;
    const int64_t width = tile_columns<Lanes>();
    const auto* from = static_cast<const typename Lanes::Operand*>(b);
    for (int64_t k = 0; k < depth; k += group, from += group * b_stride)
        for (int64_t j = 0; j < columns; j += width) {
            auto* to =
                reinterpret_cast<Packed*>(static_cast<std::byte*>(panels) + j / width * panel_stride_bytes) +
                k * width;
            if (k + group <= depth && j + width <= columns) {
                Lanes::copy(from + j, b_stride, to);
                Lanes::copy(from + j + width / 2, b_stride, to + width / 2 * group);
            } else {
                for (int64_t column = j; column < j + width; ++column)
                    for (int64_t i = 0; i < group; ++i)
                        *to++ = column < columns && k + i < depth
                                    ? static_cast<Packed>(from[i * b_stride + column])
                                    : 0;
            }
        }
}

// Into the second-level cache.
HWY_INLINE void prefetch(const void* address) {
    __builtin_prefetch(address, 0, 2);
}

// The rows are written out at compile time, so that the whole tile is held in registers.
template <typename Lanes, int... row>
HWY_INLINE void multiply_rows(std::integer_sequence<int, row...>, const ProductKernel::TileStep& step) {
    using V = typename Lanes::V;
    constexpr int64_t group = Lanes::group;
    const typename Lanes::D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto* a = static_cast<const typename Lanes::Packed*>(step.a_panel);
    const auto* b = static_cast<const typename Lanes::Packed*>(step.b_panel);
    const std::byte* next_a = step.next_a;
    const std::byte* next_b = step.next_b;
    auto* tile = static_cast<typename Lanes::Result*>(step.tile);
    V left[sizeof...(row)];
    V right[sizeof...(row)];
    if (step.begin) {
        ((left[row] = hn::Zero(d), right[row] = hn::Zero(d)), ...);
    } else {
        ((left[row] = hn::Load(d, tile + 2 * row * lanes),
          right[row] = hn::Load(d, tile + (2 * row + 1) * lanes)),
         ...);
    }
    V a_row;
    for (int64_t k = 0; k < step.depth; k += group) {
        prefetch(next_a);
        prefetch(next_b);
        const V b_left = Lanes::load(b);
        const V b_right = Lanes::load(b + lanes * group);
        ((a_row = Lanes::broadcast(a + row * group),
          left[row] = Lanes::multiply_add(a_row, b_left, left[row]),
          right[row] = Lanes::multiply_add(a_row, b_right, right[row])),
         ...);
        a += tile_rows * group;
        b += 2 * lanes * group;
        next_a += tile_rows * group * static_cast<int64_t>(sizeof(*a));
        next_b += step.next_b_stride_bytes;
    }
    ((hn::Store(left[row], d, tile + 2 * row * lanes),
      hn::Store(right[row], d, tile + (2 * row + 1) * lanes)),
     ...);
}

// Calls the function for exactly step.rows rows: what a tile at the lower edge doesn't have isn't computed.
template <typename Lanes, int rows = tile_rows>
HWY_INLINE void multiply_some_rows(const ProductKernel::TileStep& step) {
    if constexpr (rows > 1)
        if (step.rows < rows) return multiply_some_rows<Lanes, rows - 1>(step);
    multiply_rows<Lanes>(std::make_integer_sequence<int, rows>(), step);
}

template <typename Lanes>
void multiply(const ProductKernel::TileStep& step) noexcept {
    multiply_some_rows<Lanes>(step);
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
void store(const void* tiles, int64_t tile_stride_bytes, int64_t rows, int64_t columns, bool first_chunk,
           bool last_chunk, void* c, int64_t c_stride) noexcept {
    using Result = typename Lanes::Result;
    const typename Lanes::D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    auto* to = static_cast<Result*>(c);
    for (int64_t row = 0; row < rows; ++row, to += c_stride)
        for (int64_t j = 0; j < columns; j += lanes) {
            const auto* from = reinterpret_cast<const Result*>(static_cast<const std::byte*>(tiles) +
                                                               j / (2 * lanes) * tile_stride_bytes) +
                               row * 2 * lanes + j % (2 * lanes);
            if (j + lanes <= columns) {
                store_vector(d, from, first_chunk, last_chunk, to + j);
            } else {
                HWY_ALIGN Result rest[hn::MaxLanes(typename Lanes::D())] = {};
                const auto bytes = static_cast<size_t>(columns - j) * sizeof(Result);
                std::memcpy(rest, to + j, bytes);
                store_vector(d, from, first_chunk, last_chunk, rest);
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
