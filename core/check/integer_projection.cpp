// Written once, compiled for each vector width of the processor family and chosen when running.
#include "core/check/integer_projection.hpp"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/check/integer_projection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef GOBLIN_LIMB_SUMS
#define GOBLIN_LIMB_SUMS
namespace goblin {
__extension__ typedef __int128 Int128;
// Σ row_j · low_j and Σ row_j · high_j.
struct LimbSums {
    Int128 low = 0;
    Int128 high = 0;
};
}  // namespace goblin
#endif

HWY_BEFORE_NAMESPACE();
namespace goblin {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void add_rest(const T* row, int64_t from, int64_t cols, const int16_t* low, const int16_t* high,
              LimbSums& sums) {
    for (int64_t j = from; j < cols; ++j) {
        sums.low += static_cast<Int128>(row[j]) * low[j];
        sums.high += static_cast<Int128>(row[j]) * high[j];
    }
}

#if HWY_TARGET == HWY_SCALAR  // has no wider lanes to multiply into

template <typename T>
LimbSums limbs_of_bytes(const T* row, int64_t cols, const int16_t* low, const int16_t* high) {
    LimbSums sums;
    add_rest(row, 0, cols, low, high, sums);
    return sums;
}
LimbSums limbs_of_words(const int32_t* row, int64_t cols, const int16_t* low, const int16_t* high) {
    return limbs_of_bytes(row, cols, low, high);
}

#else

// 8-bit elements: pairs of 16-bit products, each below 2^24 together, are summed in 32 bits, 64 of them at a
// time.
template <typename T>
LimbSums limbs_of_bytes(const T* row, int64_t cols, const int16_t* low, const int16_t* high) {
    const hn::ScalableTag<int16_t> d16;
    const hn::Rebind<T, decltype(d16)> d8;
    const hn::RepartitionToWide<decltype(d16)> d32;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
    constexpr int64_t steps_at_once = 64;
    LimbSums sums;
    int64_t j = 0;
    while (j + lanes <= cols) {
        auto low_even = hn::Zero(d32), low_odd = low_even, high_even = low_even, high_odd = low_even;
        const int64_t stop = std::min(cols, j + steps_at_once * lanes);
        for (; j + lanes <= stop; j += lanes) {
            const auto elements = hn::PromoteTo(d16, hn::LoadU(d8, row + j));
            low_even =
                hn::ReorderWidenMulAccumulate(d32, elements, hn::LoadU(d16, low + j), low_even, low_odd);
            high_even =
                hn::ReorderWidenMulAccumulate(d32, elements, hn::LoadU(d16, high + j), high_even, high_odd);
        }
        HWY_ALIGN int32_t parts[4][HWY_MAX_BYTES / sizeof(int32_t)];
        hn::Store(low_even, d32, parts[0]);
        hn::Store(low_odd, d32, parts[1]);
        hn::Store(high_even, d32, parts[2]);
        hn::Store(high_odd, d32, parts[3]);
        for (size_t lane = 0; lane < hn::Lanes(d32); ++lane) {
            sums.low += int64_t{parts[0][lane]} + parts[1][lane];
            sums.high += int64_t{parts[2][lane]} + parts[3][lane];
        }
    }
    add_rest(row, j, cols, low, high, sums);
    return sums;
}

// 32-bit elements: products below 2^47, of which 2^16 fit in 64 bits.
LimbSums limbs_of_words(const int32_t* row, int64_t cols, const int16_t* low, const int16_t* high) {
    const hn::ScalableTag<int32_t> d32;
    const hn::Rebind<int16_t, decltype(d32)> d16;
    const hn::RepartitionToWide<decltype(d32)> d64;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d32));
    const auto odd = [&](auto words) {
        return hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(d64, words)));
    };
    constexpr int64_t steps_at_once = 1 << 15;
    LimbSums sums;
    int64_t j = 0;
    while (j + lanes <= cols) {
        auto low_sum = hn::Zero(d64), high_sum = low_sum;
        const int64_t stop = std::min(cols, j + steps_at_once * lanes);
        for (; j + lanes <= stop; j += lanes) {
            const auto elements = hn::LoadU(d32, row + j);
            const auto lows = hn::PromoteTo(d32, hn::LoadU(d16, low + j));
            const auto highs = hn::PromoteTo(d32, hn::LoadU(d16, high + j));
            low_sum = hn::Add(low_sum, hn::MulEven(elements, lows));
            low_sum = hn::Add(low_sum, hn::MulEven(odd(elements), odd(lows)));
            high_sum = hn::Add(high_sum, hn::MulEven(elements, highs));
            high_sum = hn::Add(high_sum, hn::MulEven(odd(elements), odd(highs)));
        }
        HWY_ALIGN int64_t parts[2][HWY_MAX_BYTES / sizeof(int64_t)];
        hn::Store(low_sum, d64, parts[0]);
        hn::Store(high_sum, d64, parts[1]);
        for (size_t lane = 0; lane < hn::Lanes(d64); ++lane) {
            sums.low += parts[0][lane];
            sums.high += parts[1][lane];
        }
    }
    add_rest(row, j, cols, low, high, sums);
    return sums;
}

#endif

LimbSums limbs_i8(const int8_t* row, int64_t cols, const int16_t* low, const int16_t* high) {
    return limbs_of_bytes(row, cols, low, high);
}
LimbSums limbs_u8(const uint8_t* row, int64_t cols, const int16_t* low, const int16_t* high) {
    return limbs_of_bytes(row, cols, low, high);
}

// Σ_j row_j · vector_(v, j) modulo 2^32 for `count` vectors at once, held in registers.
template <int count>
void wrapping_sums(const uint32_t* row, int64_t cols, const uint32_t* vectors, int64_t length, uint32_t* sum,
                   int64_t sum_stride) {
    const hn::ScalableTag<uint32_t> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> total[count];
#pragma GCC unroll 16
    for (int v = 0; v < count; ++v) total[v] = hn::Zero(d);
    int64_t j = 0;
    for (; j + lanes <= cols; j += lanes) {
        const auto elements = hn::LoadU(d, row + j);
#pragma GCC unroll 16
        for (int v = 0; v < count; ++v)
            total[v] = hn::Add(total[v], hn::Mul(elements, hn::LoadU(d, vectors + v * length + j)));
    }
    for (int v = 0; v < count; ++v) {
        HWY_ALIGN uint32_t
            parts[HWY_MAX_BYTES / sizeof(uint32_t)];  // SumOfLanes adds as int, which may not wrap
        hn::Store(total[v], d, parts);
        uint32_t all = 0;
        for (int64_t lane = 0; lane < lanes; ++lane) all += parts[lane];
        for (int64_t rest = j; rest < cols; ++rest) all += row[rest] * vectors[v * length + rest];
        sum[v * sum_stride] += all;
    }
}

void wrapping_u32(const uint32_t* row, int64_t cols, const uint32_t* vectors, int64_t length, uint32_t* sum,
                  int64_t sum_stride) {
    constexpr int all = WrappingRing<uint32_t>::vectors;
    static_assert(all % 10 == 0);
    for (int v = 0; v < all; v += 10)
        wrapping_sums<10>(row, cols, vectors + v * length, length, sum + v * sum_stride, sum_stride);
}

// |MIN| is 2^31 as an unsigned number, so magnitudes are compared as such.
uint64_t magnitude_i32(const int32_t* row, int64_t cols) {
    const hn::ScalableTag<int32_t> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    auto most = hn::Zero(du);
    int64_t j = 0;
    for (; j + lanes <= cols; j += lanes)
        most = hn::Max(most, hn::BitCast(du, hn::Abs(hn::LoadU(d, row + j))));
    uint64_t largest = hn::GetLane(hn::MaxOfLanes(du, most));
    for (; j < cols; ++j) {
        const auto value = int64_t{row[j]};
        largest = std::max(largest, static_cast<uint64_t>(value < 0 ? -value : value));
    }
    return largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace goblin
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace goblin {

HWY_EXPORT(limbs_i8);
HWY_EXPORT(limbs_u8);
HWY_EXPORT(limbs_of_words);
HWY_EXPORT(wrapping_u32);
HWY_EXPORT(magnitude_i32);

namespace {

constexpr int limb_bits = 15;

void add_limbs(const LimbSums& sums, uint32_t prime, uint32_t* sum) {
    const Int128 total = *sum + sums.low + (sums.high * (Int128{1} << limb_bits));
    const auto remainder = static_cast<int64_t>(total % prime);
    *sum = static_cast<uint32_t>(remainder < 0 ? remainder + prime : remainder);
}

}  // namespace

PrimeField::Operand PrimeField::operand(const std::vector<Word>& words) const {
    Operand operand;
    for (const Word word : words) {
        const int32_t balanced =
            static_cast<int32_t>(word) - (word > prime / 2 ? static_cast<int32_t>(prime) : 0);
        operand.low.push_back(static_cast<int16_t>(balanced & ((1 << limb_bits) - 1)));
        operand.high.push_back(static_cast<int16_t>(balanced >> limb_bits));
    }
    return operand;
}

void PrimeField::add_row(const int8_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                         int64_t) const {
    add_limbs(
        HWY_DYNAMIC_DISPATCH(limbs_i8)(row, cols, operand.low.data() + first, operand.high.data() + first),
        prime, sum);
}

void PrimeField::add_row(const uint8_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                         int64_t) const {
    add_limbs(
        HWY_DYNAMIC_DISPATCH(limbs_u8)(row, cols, operand.low.data() + first, operand.high.data() + first),
        prime, sum);
}

void PrimeField::add_row(const int32_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                         int64_t) const {
    add_limbs(HWY_DYNAMIC_DISPATCH(limbs_of_words)(row, cols, operand.low.data() + first,
                                                   operand.high.data() + first),
              prime, sum);
}

void PrimeField::add_row(const int64_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                         int64_t) const {
    Int128 total =
        0;  // 64 bits by 31, so that 2^33 terms fit; a multiplication and an addition with carry each
    for (int64_t j = 0; j < cols; ++j) {
        const auto at = static_cast<size_t>(first + j);
        total += static_cast<Int128>(row[j]) * (operand.low[at] + operand.high[at] * (1 << limb_bits));
    }
    add_limbs({total, 0}, prime, sum);
}

template <>
template <>
void WrappingRing<uint32_t>::add_row(const int32_t* row, int64_t cols, const Operand& operand, int64_t first,
                                     uint32_t* sum, int64_t sum_stride) const {
    HWY_DYNAMIC_DISPATCH(wrapping_u32)
    (reinterpret_cast<const uint32_t*>(row), cols, operand.words.data() + first, operand.length, sum,
     sum_stride);
}

uint64_t row_magnitude(const int32_t* row, int64_t cols) {
    return HWY_DYNAMIC_DISPATCH(magnitude_i32)(row, cols);
}

uint64_t row_magnitude(const int64_t* row, int64_t cols) {
    uint64_t largest = 0;
    for (int64_t j = 0; j < cols; ++j) {
        const auto bits = static_cast<uint64_t>(row[j]);
        largest = std::max(largest, row[j] < 0 ? -bits : bits);
    }
    return largest;
}

}  // namespace goblin
#endif
