// Lies that the product check must not let through: bits for integers, more than the stated bound for floats.
#include <QtTest>
#include <cmath>
#include <functional>
#include <limits>

#include "core/arithmetic/product.hpp"
#include "core/check/recompute.hpp"
#include "tests/support/checked_product.hpp"
#include "tests/support/product_families.hpp"

using namespace goblin;

namespace {

constexpr int64_t m = 120;
constexpr int64_t k = 150;
constexpr int64_t n = 100;

using Random = std::mt19937_64;

template <typename T>
struct Attack {
    const char* name;
    // Spoils c, [m, n] row-major.
    std::function<void(std::span<T> c, Random& random)> spoil;
};

size_t any_place(Random& random) {
    return static_cast<size_t>(random() % (m * n));
}

template <typename T>
const std::vector<Attack<T>> float_attacks = {
    {"all zero", [](std::span<T> c, Random&) { std::fill(c.begin(), c.end(), T{0}); }},
    {"all NaN", [](std::span<T> c, Random&) { std::fill(c.begin(), c.end(), canonical_nan<T>()); }},
    {"all infinite",
     [](std::span<T> c, Random&) { std::fill(c.begin(), c.end(), std::numeric_limits<T>::infinity()); }},
    {"another product's numbers",
     [](std::span<T> c, Random& random) { std::shuffle(c.begin(), c.end(), random); }},
    {"all halved",
     [](std::span<T> c, Random&) {
         for (T& element : c) element /= 2;
     }},
    {"a row exchanged for the next",
     [](std::span<T> c, Random&) { std::swap_ranges(c.begin(), c.begin() + n, c.begin() + n); }},
    {"1 % of the signs flipped",
     [](std::span<T> c, Random& random) {
         for (int64_t i = 0; i < m * n / 100; ++i) {
             T& element = c[any_place(random)];
             element = -element;
         }
     }},
    {"two errors that cancel under ±1",
     [](std::span<T> c, Random&) {
         c[5 * n + 3] += T(1000);
         c[5 * n + 4] -= T(1000);
         c[5 * n + 8] += T(1000);
         c[5 * n + 9] += T(1000);
     }},
    {"errors that cancel down a column",
     [](std::span<T> c, Random&) {
         c[5 * n + 3] += T(1000);
         c[6 * n + 3] -= T(1000);
     }},
    {"one element far off", [](std::span<T> c, Random& random) { c[any_place(random)] += T(1e4); }},
    {"one element at the end of the range",
     [](std::span<T> c, Random& random) { c[any_place(random)] = std::numeric_limits<T>::max(); }},
    {"both ends of the range in one row",
     [](std::span<T> c, Random&) {
         c[7 * n + 1] = std::numeric_limits<T>::max();
         c[7 * n + 2] = -std::numeric_limits<T>::max();
     }},
    {"one infinity",
     [](std::span<T> c, Random& random) { c[any_place(random)] = std::numeric_limits<T>::infinity(); }},
    {"one NaN", [](std::span<T> c, Random& random) { c[any_place(random)] = canonical_nan<T>(); }},
};

// Inside any bound, so a bound alone would let them through; the contract's rules catch them.
template <typename T>
const std::vector<Attack<T>> contract_attacks = {
    {"a NaN with a payload where a NaN belongs",
     [](std::span<T> c, Random&) {
         for (T& element : c)
             if (std::isnan(element)) element = -element;
     }},
    {"−0", [](std::span<T> c, Random& random) { c[any_place(random)] = -T{0}; }},
};

template <typename T>
CheckedProduct normal_product(Random& random) {
    return checked_product<T>(m, k, n, [&](Tensor& a, Tensor& b) { families::normal<T>(random, a, b); });
}

}  // namespace

class TestProductCheckAttacks : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase() { qInfo("seed %llu", static_cast<unsigned long long>(seed_)); }

    void spoilt_floats_are_convicted() {
        spoilt_normal_floats<float>();
        spoilt_normal_floats<double>();
    }

    void spoilt_floats_with_an_infinity_in_an_operand_are_convicted() {
        spoilt_floats_with<float>(std::numeric_limits<float>::infinity());
        spoilt_floats_with<double>(-std::numeric_limits<double>::infinity());
    }

    void spoilt_floats_with_a_nan_in_an_operand_are_convicted() {
        spoilt_floats_with<float>(std::numeric_limits<float>::quiet_NaN());
        spoilt_floats_with<double>(std::numeric_limits<double>::quiet_NaN());
    }

    void zeroed_columns_beside_one_of_a_hundred_million_are_convicted() {
        for (const bool honest : {true, false}) {
            CheckedProduct product = checked_product<float>(m, k, n, [&](Tensor& a, Tensor& b) {
                families::normal<float>(random_, a, b);
                for (int64_t row = 0; row < k; ++row)
                    b.as<float>()[static_cast<size_t>(row * n + 17)] *= 1e8f;
            });
            if (!honest)
                for (int64_t row = 0; row < m; ++row)
                    for (const int64_t col : {3, 50, 99})
                        product.c.as<float>()[static_cast<size_t>(row * n + col)] = 0;
            QCOMPARE(product.check(random_()).accepted(), honest);
        }
    }

    void one_column_spoilt_in_proportion_to_its_rows_is_convicted() {
        CheckedProduct product = normal_product<float>(random_);
        for (int64_t row = 0; row < m; ++row)
            product.c.as<float>()[static_cast<size_t>(row * n + 40)] *= 1.5f;
        expect_convicted(product, "a column scaled");
    }

    void numbers_claimed_for_a_column_of_zeros_are_convicted_however_small() {
        CheckedProduct product = checked_product<float>(m, k, n, [&](Tensor& a, Tensor& b) {
            families::normal<float>(random_, a, b);
            for (int64_t row = 0; row < k; ++row) b.as<float>()[static_cast<size_t>(row * n + 17)] = 0;
        });
        QVERIFY(product.check(random_()).accepted());
        product.c.as<float>()[33 * n + 17] = std::numeric_limits<float>::denorm_min();
        expect_convicted(product, "a subnormal among zeros");
        QCOMPARE(product.check(random_()).conviction->col, 17);
    }

    void numbers_claimed_for_a_row_of_zeros_are_convicted_however_small() {
        CheckedProduct product = checked_product<double>(m, k, n, [&](Tensor& a, Tensor& b) {
            families::normal<double>(random_, a, b);
            std::fill_n(a.as<double>().begin() + 21 * k, k, 0.0);
        });
        QVERIFY(product.check(random_()).accepted());
        product.c.as<double>()[21 * n + 5] = 1e-300;
        expect_convicted(product, "a tiny number in a row of zeros");
    }

    void a_zero_of_the_wrong_sign_is_convicted() {
        CheckedProduct product = checked_product<float>(m, k, n, [&](Tensor& a, Tensor& b) {
            families::normal<float>(random_, a, b);
            for (int64_t row = 0; row < k; ++row) b.as<float>()[static_cast<size_t>(row * n + 17)] = 0;
        });
        product.c.as<float>()[33 * n + 17] = -0.0f;
        const ProductVerdict verdict = product.check(random_());
        QVERIFY(!verdict.accepted());
        QVERIFY((*verdict.conviction == ProductConviction{33, 17, 0, 0x80000000}));
    }

    void one_lie_beside_an_infinity_in_its_own_row_or_column_is_convicted() {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        for (const bool in_a : {true, false}) {
            const CheckedProduct honest = checked_product<float>(m, k, n, [&](Tensor& a, Tensor& b) {
                families::normal<float>(random_, a, b);
                (in_a ? a.as<float>()[31 * k + 20] : b.as<float>()[31 * n + 20]) = infinity;
            });
            for (const float lie : {-infinity, infinity, canonical_nan<float>(), 0.0f, 1.0f}) {
                CheckedProduct product(honest.a.clone(), honest.b.clone());
                float& element = in_a ? product.c.as<float>()[31 * n + 5] : product.c.as<float>()[5 * n + 20];
                if (bits_of(element) == bits_of(lie)) continue;
                element = lie;
                expect_convicted(product, "a lie beside an infinity");
            }
        }
    }

    void few_spoilt_rows_stand_out_far_below_the_threshold() {
        // Each residual is some hundred times what rounding gives, and a tenth of λ's threshold.
        CheckedProduct product = checked_product<float>(
            2000, 64, 64, [&](Tensor& a, Tensor& b) { families::normal<float>(random_, a, b); });
        for (const int64_t row : {100, 900, 1500})
            product.c.as<float>()[static_cast<size_t>(row * 64 + 9)] += 0.002f;
        const ProductVerdict verdict = product.check(random_());
        QVERIFY(!verdict.accepted());
        QCOMPARE(verdict.conviction->col, 9);
    }

    // The promise itself, measured.
    void an_error_above_the_bound_that_is_then_stated_is_as_rare_as_promised() {
        constexpr double stated = 0.1;
        constexpr int tries = 200;
        int escaped = 0;
        const CheckedProduct honest = normal_product<float>(random_);
        CheckedProduct spoilt = normal_product<float>(random_);
        for (int i = 0; i < tries; ++i) {
            const ProductCheckOptions options{
                .secret = seeded_secret(random_()), .escape_probability = stated, .stop = {}};
            std::copy(honest.a.bytes().begin(), honest.a.bytes().end(), spoilt.a.bytes().begin());
            std::copy(honest.b.bytes().begin(), honest.b.bytes().end(), spoilt.b.bytes().begin());
            std::copy(honest.c.bytes().begin(), honest.c.bytes().end(), spoilt.c.bytes().begin());
            const double error = 30 * honest.check(options).absolute_bound;  // rounding is nothing beside it
            // In every row, so that none stands out and no recomputation of the worst decides.
            const auto col = static_cast<int64_t>(random_() % n);
            for (int64_t row = 0; row < m; ++row)
                spoilt.c.as<float>()[static_cast<size_t>(row * n + col)] += static_cast<float>(error);
            const ProductVerdict verdict = spoilt.check(options);
            escaped += verdict.accepted() && verdict.absolute_bound < error;
        }
        QVERIFY2(escaped <= stated * tries + 4 * std::sqrt(stated * tries),
                 qPrintable(QString::number(escaped)));
    }

    void every_wrong_bit_in_integers_is_convicted() {
        spoilt_integers<int8_t>();
        spoilt_integers<uint8_t>();
        spoilt_integers<int32_t>();
        spoilt_integers<int64_t>();
    }

    void errors_that_only_the_highest_bit_shows_are_convicted_where_products_wrap() {
        for (int i = 0; i < 20; ++i) {
            CheckedProduct product = checked_product<int32_t>(m, k, n, [&](Tensor& a, Tensor& b) {
                for (Tensor* tensor : {&a, &b})
                    for (int32_t& element : tensor->as<int32_t>()) element = static_cast<int32_t>(random_());
            });
            QVERIFY(product.check(random_()).accepted());
            int32_t& element = product.c.as<int32_t>()[any_place(random_)];
            element = static_cast<int32_t>(static_cast<uint32_t>(element) ^ 0x80000000u);
            expect_convicted(product, "the highest bit");
        }
    }

    void a_conviction_names_the_element_and_its_bits() {
        CheckedProduct product = normal_product<float>(random_);
        float& element = product.c.as<float>()[11 * n + 22];
        const uint64_t right = bits_of(element);
        element = 12345.0f;
        const ProductVerdict verdict = product.check(random_());
        QVERIFY(!verdict.accepted());
        QVERIFY((*verdict.conviction == ProductConviction{11, 22, right, bits_of(12345.0f)}));
    }

  private:
    void expect_convicted(const CheckedProduct& product, const char* attack) {
        QVERIFY2(!product.check(random_()).accepted(), attack);
    }

    template <typename T>
    void try_attacks(const std::vector<Attack<T>>& attacks, const std::function<CheckedProduct()>& honest) {
        for (const Attack<T>& attack : attacks) {
            CheckedProduct product = honest();
            QVERIFY2(product.check(random_()).accepted(), attack.name);
            const Tensor before = product.c.clone();
            attack.spoil(product.c.as<T>(), random_);
            if (!product.c.same_bits(before)) expect_convicted(product, attack.name);
        }
    }

    template <typename T>
    void spoilt_normal_floats() {
        try_attacks<T>(float_attacks<T>, [&] { return normal_product<T>(random_); });
        try_attacks<T>(contract_attacks<T>, [&] { return normal_product<T>(random_); });
    }

    template <typename T>
    void spoilt_floats_with(T special) {
        for (const bool in_a : {true, false}) {
            const auto honest = [&] {
                return checked_product<T>(m, k, n, [&](Tensor& a, Tensor& b) {
                    families::normal<T>(random_, a, b);
                    if (in_a)
                        a.as<T>()[31 * k + 20] = special;
                    else
                        b.as<T>()[31 * n + 20] = special;
                });
            };
            try_attacks<T>(float_attacks<T>, honest);
            try_attacks<T>(contract_attacks<T>, honest);
        }
    }

    template <typename T>
    void spoilt_integers() {
        using Out = ProductOf<T>;
        using Word = std::make_unsigned_t<Out>;
        const std::vector<Attack<Out>> attacks = {
            {"all zero", [](std::span<Out> c, Random&) { std::fill(c.begin(), c.end(), Out{0}); }},
            {"one bit of one element",
             [](std::span<Out> c, Random& random) {
                 Out& element = c[any_place(random)];
                 element =
                     static_cast<Out>(static_cast<Word>(element) ^ Word{1} << random() % (sizeof(Out) * 8));
             }},
            {"one bit in every row",
             [](std::span<Out> c, Random& random) {
                 for (int64_t row = 0; row < m; ++row) {
                     Out& element = c[static_cast<size_t>(row * n) + random() % n];
                     element = static_cast<Out>(static_cast<Word>(element) ^
                                                Word{1} << random() % (sizeof(Out) * 8));
                 }
             }},
            {"two errors that cancel under ±1",
             [](std::span<Out> c, Random&) {
                 c[5 * n + 3] = static_cast<Out>(static_cast<Word>(c[5 * n + 3]) + 1);
                 c[5 * n + 4] = static_cast<Out>(static_cast<Word>(c[5 * n + 4]) - 1);
             }},
            {"two rows exchanged",
             [](std::span<Out> c, Random&) { std::swap_ranges(c.begin(), c.begin() + n, c.begin() + n); }},
        };
        for (const bool wrapping : {false, true})
            try_attacks<Out>(attacks, [&] {
                return checked_product<T>(m, k, n, [&](Tensor& a, Tensor& b) {
                    for (Tensor* tensor : {&a, &b})
                        for (T& element : tensor->as<T>())
                            element = static_cast<T>(wrapping ? random_() : random_() % 100);
                });
            });
    }

    uint64_t seed_ = any_seed();
    Random random_{seed_};
};

QTEST_APPLESS_MAIN(TestProductCheckAttacks)
#include "test_product_check_attacks.moc"
