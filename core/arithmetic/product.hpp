// The contract's rule for products in code: the exact value of one element of A · B.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.hpp"

namespace goblin {

// Contract, rule 4: a chain of fused multiply-adds runs over at most this many k, then starts again at +0.
inline constexpr int64_t product_chunk_length = 4096;

// Every n-th element of memory: a row of a row-major matrix has stride 1, a column the row's length.
template <typename T>
struct Strided {
    const T* first = nullptr;
    int64_t stride = 1;  // in elements
    const T& operator[](int64_t index) const { return first[index * stride]; }
};

// The element type of A · B for operands of type T: 8-bit integers give i32, others themselves.
template <typename T>
using ProductOf = std::conditional_t<sizeof(T) == 1, int32_t, T>;

// The same as a value. Throws ErrorKind::input for bool.
DType product_dtype(DType operand);

// Contract, rule 7: outputs hold one quiet NaN, f32 7fc00000, f64 7ff8000000000000.
template <std::floating_point T>
T canonical_nan() {
    if constexpr (sizeof(T) == 4)
        return std::bit_cast<float>(uint32_t{0x7fc00000});
    else
        return std::bit_cast<double>(uint64_t{0x7ff8000000000000});
}

// acc + a · b: floats with one rounding, integers wrapping modulo 2^32 or 2^64.
template <typename Acc, typename T>
Acc multiply_add(T a, T b, Acc acc) {
    if constexpr (std::is_floating_point_v<T>) {
        return std::fma(a, b, acc);
    } else {
        using Unsigned = std::make_unsigned_t<Acc>;
        const auto wide_a = static_cast<Unsigned>(static_cast<Acc>(a));
        const auto wide_b = static_cast<Unsigned>(static_cast<Acc>(b));
        return static_cast<Acc>(static_cast<Unsigned>(acc) + wide_a * wide_b);
    }
}

// One element under construction, chunk after chunk.
template <typename T>
class ProductChain {
  public:
    using Acc = ProductOf<T>;

    // The next chunk of k: product_chunk_length of them, or fewer in the last.
    void add_chunk(Strided<T> a, Strided<T> b, int64_t length) {
        assert(length > 0 && length <= product_chunk_length && !ended_);
        Acc acc = 0;
        for (int64_t k = 0; k < length; ++k) acc = multiply_add(a[k], b[k], acc);
        sum_ = started_ ? add(sum_, acc) : acc;
        started_ = true;
        ended_ = length < product_chunk_length;
    }

    Acc finish() const {
        const Acc result = add(sum_, Acc{0});  // turns -0 into +0
        if constexpr (std::is_floating_point_v<Acc>)
            if (std::isnan(result)) return canonical_nan<Acc>();
        return result;
    }

  private:
    static Acc add(Acc x, Acc y) {
        if constexpr (std::is_floating_point_v<Acc>)
            return x + y;
        else
            return multiply_add(Acc{1}, y, x);
    }

    Acc sum_ = 0;
    bool started_ = false;
    bool ended_ = false;
};

// sum over k < depth of a[k] · b[k], in the contract's order. The caller holds a FloatEnvironment.
template <typename T>
ProductOf<T> product_element(Strided<T> a, Strided<T> b, int64_t depth) {
    ProductChain<T> chain;
    for (int64_t k = 0; k < depth; k += product_chunk_length)
        chain.add_chunk({&a[k], a.stride}, {&b[k], b.stride}, std::min(product_chunk_length, depth - k));
    return chain.finish();
}

// Calls work with a value of the C++ type that `operand` names, for the types that have products:
//   with_product_type(dtype, [&](auto zero) { using T = decltype(zero); … });
// Throws ErrorKind::input for bool.
template <typename Work>
auto with_product_type(DType operand, Work&& work) {
    switch (operand) {
        case DType::f32:
            return work(float{});
        case DType::f64:
            return work(double{});
        case DType::i32:
            return work(int32_t{});
        case DType::i64:
            return work(int64_t{});
        case DType::i8:
            return work(int8_t{});
        case DType::u8:
            return work(uint8_t{});
        case DType::boolean:
            break;
    }
    product_dtype(operand);  // says what is wrong
    std::abort();
}

}  // namespace goblin
