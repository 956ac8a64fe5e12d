// The contract's rule for one element of a product, by answers worked out by hand.
#include <QtTest>
#include <bit>
#include <cmath>
#include <limits>

#include "core/arithmetic/float_environment.hpp"
#include "core/arithmetic/product.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

template <typename T>
ProductOf<T> dot(const std::vector<T>& a, const std::vector<T>& b) {
    return product_element<T>({a.data(), 1}, {b.data(), 1}, static_cast<int64_t>(a.size()));
}

uint32_t bits(float value) {
    return std::bit_cast<uint32_t>(value);
}
uint64_t bits(double value) {
    return std::bit_cast<uint64_t>(value);
}

// 4096-long runs of zeros between the given numbers, times ones: each number is a chunk of its own.
float sum_of_chunks(std::initializer_list<float> chunks) {
    std::vector<float> a;
    for (const float chunk : chunks) {
        a.push_back(chunk);
        a.resize((a.size() + 4095) / 4096 * 4096, 0.0f);
    }
    return dot(a, std::vector<float>(a.size(), 1.0f));
}

}  // namespace

class TestProductRule : public QObject {
    Q_OBJECT
  private slots:
    void a_sum_of_nothing_is_plus_zero() {
        QCOMPARE(bits(dot<float>({}, {})), 0u);
        QCOMPARE(bits(dot<double>({}, {})), uint64_t{0});
        QCOMPARE(dot<int8_t>({}, {}), 0);
    }
    void each_step_rounds_once() {
        // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24; a product rounded on its own would give 0.
        QCOMPARE(dot<float>({-1, 1 + 0x1p-12f}, {1 + 0x1p-11f, 1 + 0x1p-12f}), 0x1p-24f);
        QCOMPARE(dot<double>({-1, 1 + 0x1p-27}, {1 + 0x1p-26, 1 + 0x1p-27}), 0x1p-54);
    }
    void k_is_walked_upwards() {
        QCOMPARE(dot<float>({0x1p24f, 1, -0x1p24f}, {1, 1, 1}), 0.0f);
        QCOMPARE(dot<float>({0x1p24f, -0x1p24f, 1}, {1, 1, 1}), 1.0f);
    }
    void a_new_sum_starts_every_4096() {
        std::vector<float> a(4098, 0.0f);
        a[0] = 0x1p24f;
        a[4096] = a[4097] = 1;  // a sum of their own: 2, which 2^24 does not absorb
        QCOMPARE(dot(a, std::vector<float>(4098, 1.0f)), 0x1p24f + 2);
        a[4095] = a[4096];  // … but this 1 still belongs to the first
        a[4096] = 0;
        QCOMPARE(dot(a, std::vector<float>(4098, 1.0f)), 0x1p24f);
    }
    void chunks_are_added_in_order() {
        QCOMPARE(sum_of_chunks({0x1p24f, 1, -0x1p24f}), 0.0f);
        QCOMPARE(sum_of_chunks({0x1p24f, -0x1p24f, 1}), 1.0f);
        QCOMPARE(sum_of_chunks({1, 0x1p24f, -0x1p24f, 1}), 1.0f);
    }
    void zeros_at_the_end_change_nothing() {
        std::vector<float> a{0.1f, -0.7f, 1e-40f}, b{3.3f, 1e-3f, -7e30f};
        const float short_sum = dot(a, b);
        a.resize(5000, 0.0f);
        b.resize(5000, 0.0f);
        QCOMPARE(bits(dot(a, b)), bits(short_sum));
    }
    void no_product_is_minus_zero() {
        QCOMPARE(bits(dot<float>({-0.0f}, {1})), 0u);
        QCOMPARE(bits(dot<float>({-0x1p-100f}, {0x1p-100f})), 0u);  // underflows from below
        QCOMPARE(bits(dot<double>({-0x1p-600}, {0x1p-600})), uint64_t{0});
        QCOMPARE(bits(sum_of_chunks({-0.0f, -0.0f})), 0u);
    }
    void subnormal_numbers_are_kept() {
        QCOMPARE(dot<float>({0x1p-100f}, {0x1p-49f}), 0x1p-149f);
        QCOMPARE(dot<float>({0x1p-149f}, {0x1p100f}), 0x1p-49f);
    }
    void every_nan_is_the_canonical_one() {
        const float infinity = std::numeric_limits<float>::infinity();
        const auto nan_with_payload = std::bit_cast<float>(0xffabcdefu);
        QCOMPARE(bits(dot<float>({infinity}, {0})), 0x7fc00000u);
        QCOMPARE(bits(dot<float>({infinity, infinity}, {1, -1})), 0x7fc00000u);
        QCOMPARE(bits(dot<float>({nan_with_payload}, {1})), 0x7fc00000u);
        QCOMPARE(bits(sum_of_chunks({1, nan_with_payload, 1})), 0x7fc00000u);
        QCOMPARE(bits(dot<double>({std::numeric_limits<double>::infinity()}, {0})), 0x7ff8000000000000u);
    }
    void infinities_stay() {
        const float infinity = std::numeric_limits<float>::infinity();
        QCOMPARE(dot<float>({3e38f, 1}, {10, 1}), infinity);
        QCOMPARE(dot<float>({-infinity, 1}, {2, 1}), -infinity);
    }
    void integers_wrap() {
        QCOMPARE(dot<int32_t>({65536}, {65536}), 0);
        QCOMPARE(dot<int32_t>({std::numeric_limits<int32_t>::max(), 1}, {1, 1}),
                 std::numeric_limits<int32_t>::min());
        QCOMPARE(dot<int32_t>({std::numeric_limits<int32_t>::min()}, {-1}),
                 std::numeric_limits<int32_t>::min());
        QCOMPARE(dot<int64_t>({int64_t{1} << 62, 1}, {2, -1}), std::numeric_limits<int64_t>::max());
    }
    void eight_bit_integers_are_multiplied_in_i32() {
        QCOMPARE(dot<int8_t>({-128, -128}, {-128, 127}), 16384 - 16256);
        QCOMPARE(dot<uint8_t>({255, 255}, {255, 255}), 130050);
        const size_t wrapping = 140'000;  // 140000 · 127² > 2^31
        QCOMPARE(dot(std::vector<int8_t>(wrapping, 127), std::vector<int8_t>(wrapping, 127)),
                 static_cast<int32_t>(static_cast<uint32_t>(wrapping * 127 * 127)));
    }
    void a_column_is_read_with_its_stride() {
        const std::vector<float> row{1, 2, 3};
        const std::vector<float> matrix{1, 10, 2, 20, 3, 30};
        QCOMPARE(product_element<float>({row.data(), 1}, {&matrix[1], 2}, 3), 140.0f);
    }
    void bool_has_no_products() {
        VERIFY_REFUSED(product_dtype(DType::boolean), "expect numbers, found bool");
        QCOMPARE(product_dtype(DType::i8), DType::i32);
        QCOMPARE(product_dtype(DType::u8), DType::i32);
        QCOMPARE(product_dtype(DType::i64), DType::i64);
    }

    void the_float_environment_is_set_and_comes_back() {
        std::fesetround(FE_UPWARD);
        {
            const FloatEnvironment environment;
            QCOMPARE(std::fegetround(), FE_TONEAREST);
        }
        QCOMPARE(std::fegetround(), FE_UPWARD);
        std::fesetround(FE_TONEAREST);
    }
#if defined(__x86_64__)
    void flushing_to_zero_is_cleared_and_comes_back() {
        constexpr unsigned flush_and_zero = 0x8040;  // MXCSR: flush to zero, denormals are zero
        const unsigned before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(before | flush_and_zero);
        float kept = 0;
        {
            const FloatEnvironment environment;
            kept = dot<float>({0x1p-100f}, {0x1p-49f});
        }
        const unsigned after = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(before);
        QCOMPARE(after & flush_and_zero, flush_and_zero);
        QCOMPARE(bits(kept), 1u);
    }
#endif
};

QTEST_APPLESS_MAIN(TestProductRule)
#include "test_product_rule.moc"
