// Uniform draws from secret bytes, by rejection where a remainder would favour some values.
#include "core/check/secret.hpp"

#include <array>
#include <bit>
#include <cassert>

namespace goblin {

namespace {

uint32_t power_modulo(uint64_t base, uint32_t exponent, uint32_t modulus) {
    uint64_t power = 1;
    for (base %= modulus; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power = power * base % modulus;
        base = base * base % modulus;
    }
    return static_cast<uint32_t>(power);
}

// Miller–Rabin; the witnesses 2, 3, 5 and 7 leave no error below 3,215,031,751 (Pomerance, Selfridge,
// Wagstaff 1980).
bool is_prime(uint32_t odd) {
    assert(odd > 7 && odd % 2 == 1);
    const int twos = std::countr_zero(odd - 1);
    for (const uint32_t witness : std::array<uint32_t, 4>{2, 3, 5, 7}) {
        uint64_t power = power_modulo(witness, (odd - 1) >> twos, odd);
        bool passes = power == 1 || power == odd - 1;
        for (int square = 1; square < twos && !passes; ++square) {
            power = power * power % odd;
            passes = power == odd - 1;
        }
        if (!passes) return false;
    }
    return true;
}

}  // namespace

uint64_t SecretDraws::below(uint64_t bound) {
    assert(bound >= 1);
    const uint64_t mask = bound == 1 ? 0 : ~uint64_t{0} >> std::countl_zero(bound - 1);
    while (true) {
        const uint64_t value = words<uint64_t>(1)[0] & mask;
        if (value < bound) return value;
    }
}

std::vector<double> SecretDraws::signed_units(size_t count) {
    const std::vector<uint32_t> bits = words<uint32_t>(count);
    std::vector<double> units(count);
    for (size_t i = 0; i < count; ++i)
        units[i] = static_cast<double>(2 * static_cast<int32_t>(bits[i] >> 8) + 1 - (1 << 24)) * 0x1p-24;
    return units;
}

std::vector<uint32_t> SecretDraws::all_below(uint32_t bound, size_t count) {
    const uint32_t mask = bound == 1 ? 0 : ~uint32_t{0} >> std::countl_zero(bound - 1);
    std::vector<uint32_t> values = words<uint32_t>(count);
    for (uint32_t& value : values) {
        value &= mask;
        while (value >= bound) value = words<uint32_t>(1)[0] & mask;
    }
    return values;
}

uint32_t SecretDraws::prime() {
    while (true) {
        const uint32_t candidate = words<uint32_t>(1)[0] >> 2 | uint32_t{1} << 30 | 1;
        if (is_prime(candidate)) return candidate;
    }
}

}  // namespace goblin
