// What the product check of f32 and of f64 differ in.
#pragma once

namespace goblin {

template <typename T>
struct FloatTraits;

template <>
struct FloatTraits<float> {
    static constexpr double unit_roundoff = 0x1p-24;
    static constexpr double underflow = 0x1p-150;      // most that a step of a product loses below 2^-126
    static constexpr double check_roundoff = 0x1p-53;  // of the check's own sums
    // Columns' exponents are kept in this range, so that 2^-e is a number of the type.
    static constexpr int least_exponent = -120;
    static constexpr int largest_exponent = 140;
    static constexpr double zero_column_factor =
        0x1p400;  // lifts any number claimed for it above any threshold
    // What underflow in the check itself may hide: in the norm of a row (for √N columns), and in a sum of
    // products.
    static constexpr double smallest_norm = 0x1p-74;
    static constexpr double smallest_threshold = 0;
};

template <>
struct FloatTraits<double> {
    static constexpr double unit_roundoff = 0x1p-53;
    static constexpr double underflow = 0x1p-1074;  // 2^-1075, which is no f64
    static constexpr double check_roundoff = 0x1p-100;
    static constexpr int least_exponent = -990;
    static constexpr int largest_exponent = 1020;
    static constexpr double zero_column_factor = 0x1p990;
    static constexpr double smallest_norm = 0x1p-510;
    static constexpr double smallest_threshold = 0x1p-1060;
};

}  // namespace goblin
