// Families of operands for products: what researchers' data looks like, and what is hard for a check of
// rounding errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>

#include "core/tensor/tensor.hpp"

namespace goblin {

// Fills A [M, K] and B [K, N].
template <typename T>
struct ProductFamily {
    std::string_view name;
    bool hostile;  // made to have rounding errors that no threshold on rounding can expect
    void (*fill)(std::mt19937_64& random, Tensor& a, Tensor& b);
};

namespace families {

template <typename T, typename Draw>
void fill_each(Tensor& tensor, Draw draw) {
    for (T& element : tensor.as<T>()) element = static_cast<T>(draw());
}

template <typename T>
void normal(std::mt19937_64& random, Tensor& a, Tensor& b) {
    std::normal_distribution<double> draw;
    fill_each<T>(a, [&] { return draw(random); });
    fill_each<T>(b, [&] { return draw(random); });
}

template <typename T, typename Distribution>
void both(std::mt19937_64& random, Distribution draw, Tensor& a, Tensor& b) {
    fill_each<T>(a, [&] { return draw(random); });
    fill_each<T>(b, [&] { return draw(random); });
}

template <typename T>
void uniform(std::mt19937_64& random, Tensor& a, Tensor& b) {
    both<T>(random, std::uniform_real_distribution<double>(-1, 1), a, b);
}

template <typename T>
void all_positive(std::mt19937_64& random, Tensor& a, Tensor& b) {
    both<T>(random, std::uniform_real_distribution<double>(0, 1), a, b);
}

template <typename T>
void constant(std::mt19937_64&, Tensor& a, Tensor& b) {
    fill_each<T>(a, [] { return 0.1; });
    fill_each<T>(b, [] { return 0.7; });
}

template <typename T>
void mask(std::mt19937_64& random, Tensor& a, Tensor& b) {
    std::bernoulli_distribution set(0.5);
    fill_each<T>(a, [&] { return set(random) ? 0.1 : 0.0; });
    fill_each<T>(b, [&] { return set(random) ? 0.1 : 0.0; });
}

template <typename T>
void pixels(std::mt19937_64& random, Tensor& a, Tensor& b) {
    std::uniform_int_distribution<int> level(0, 255);
    fill_each<T>(a, [&] { return static_cast<T>(level(random)) / T{255}; });
    fill_each<T>(b, [&] { return static_cast<T>(level(random)) / T{255}; });
}

// Every row and every column, of both operands, has a magnitude of its own, over 24 decades in all.
template <typename T>
void badly_scaled(std::mt19937_64& random, Tensor& a, Tensor& b) {
    normal<T>(random, a, b);
    std::uniform_real_distribution<double> decade(-6, 6);
    for (Tensor* tensor : {&a, &b}) {
        const auto cols = static_cast<size_t>(tensor->shape()[1]);
        std::vector<double> factor(cols);
        for (double& value : factor) value = std::pow(10.0, decade(random));
        const std::span<T> elements = tensor->as<T>();
        for (size_t i = 0; i < elements.size();) {
            const double row_factor = std::pow(10.0, decade(random));
            for (size_t j = 0; j < cols; ++j, ++i)
                elements[i] = static_cast<T>(static_cast<double>(elements[i]) * factor[j] * row_factor);
        }
    }
}

// 10^8 first, then ones that it absorbs.
template <typename T>
void absorbing(std::mt19937_64&, Tensor& a, Tensor& b) {
    fill_each<T>(a, [] { return 1.0; });
    fill_each<T>(b, [] { return 1.0; });
    const auto cols = static_cast<size_t>(b.shape()[1]);
    for (T& element : b.as<T>().subspan(0, cols)) element = sizeof(T) == 4 ? T(1e8) : T(1e17);
}

// Products that are themselves subnormal, and lose bits in every step.
template <typename T>
void subnormal(std::mt19937_64& random, Tensor& a, Tensor& b) {
    const double tiny = std::ldexp(1.0, (std::numeric_limits<T>::min_exponent - 8) / 2);
    std::normal_distribution<double> draw(0, tiny);
    fill_each<T>(a, [&] { return draw(random); });
    fill_each<T>(b, [&] { return draw(random); });
}

}  // namespace families

template <typename T>
inline constexpr ProductFamily<T> product_families[] = {
    {"normal", false, families::normal<T>},
    {"uniform", false, families::uniform<T>},
    {"all positive", false, families::all_positive<T>},
    {"constant", false, families::constant<T>},
    {"0/0.1 mask", false, families::mask<T>},
    {"pixel", false, families::pixels<T>},
    {"badly scaled", false, families::badly_scaled<T>},
    {"subnormal", false, families::subnormal<T>},
    {"absorbing", true, families::absorbing<T>},
};

}  // namespace goblin
