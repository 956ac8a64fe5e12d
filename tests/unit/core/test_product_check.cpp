// What the product check accepts: every honest result of every type, and what it says about it.
#include <QtTest>
#include <cmath>
#include <limits>

#include "core/arithmetic/product.hpp"
#include "tests/support/checked_product.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/product_families.hpp"

using namespace goblin;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <typename T>
CheckedProduct normal_product(int64_t m, int64_t k, int64_t n, uint64_t seed) {
    std::mt19937_64 random(seed);
    return checked_product<T>(m, k, n, [&](Tensor& a, Tensor& b) { families::normal<T>(random, a, b); });
}

template <typename T>
CheckedProduct any_bits_product(int64_t m, int64_t k, int64_t n, uint64_t seed) {
    std::mt19937_64 random(seed);
    return checked_product<T>(m, k, n, [&](Tensor& a, Tensor& b) {
        for (Tensor* tensor : {&a, &b})
            for (std::byte& byte : tensor->bytes()) byte = static_cast<std::byte>(random() >> 40);
    });
}

// Hands out copies, as a file would, and remembers the largest block it was asked for.
class CopyingSource : public MatrixSource {
  public:
    explicit CopyingSource(const Tensor& tensor)
        : MatrixSource(tensor.dtype(), tensor.shape()[0], tensor.shape()[1]), memory_(tensor) {}

    MatrixView view(const Block& block, Workspace& buffer) const override {
        Workspace unused;
        const MatrixView whole = memory_.view(block, unused);
        const size_t line_bytes = static_cast<size_t>(block.cols) * size_of(dtype());
        std::byte* target = buffer.reserve(line_bytes * static_cast<size_t>(block.rows));
        for (int64_t row = 0; row < block.rows; ++row)
            std::memcpy(target + static_cast<size_t>(row) * line_bytes,
                        static_cast<const std::byte*>(whole.elements) +
                            static_cast<size_t>(row * whole.row_stride) * size_of(dtype()),
                        line_bytes);
        uint64_t largest = largest_bytes;
        const uint64_t here = line_bytes * static_cast<uint64_t>(block.rows);
        while (largest < here && !largest_bytes.compare_exchange_weak(largest, here)) {
        }
        return {target, block.cols};
    }

    mutable std::atomic<uint64_t> largest_bytes{0};

  private:
    MemoryMatrix memory_;
};

}  // namespace

class TestProductCheck : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase() { qInfo("seed %llu", static_cast<unsigned long long>(seed_)); }

    void honest_floats_of_every_family_are_accepted() {
        honest_families<float>();
        honest_families<double>();
    }

    void honest_results_of_any_shape_and_any_bits_are_accepted() {
        const std::vector<int64_t> lengths = {1, 2, 3, 7, 17, 64, 130};
        std::mt19937_64 random(seed_);
        for (int round = 0; round < 40; ++round) {
            const auto length = [&] { return lengths[random() % lengths.size()]; };
            const int64_t m = length(), k = length(), n = length();
            const uint64_t seed = random();
            any_bits_accepted<float>(m, k, n, seed);
            any_bits_accepted<double>(m, k, n, seed);
            any_bits_accepted<int8_t>(m, k, n, seed);
            any_bits_accepted<uint8_t>(m, k, n, seed);
            any_bits_accepted<int32_t>(m, k, n, seed);
            any_bits_accepted<int64_t>(m, k, n, seed);
        }
    }

    void sums_over_several_chunks_are_accepted() {
        for (const int64_t k : {4095, 4096, 4097, 9000}) {
            QVERIFY(normal_product<float>(5, k, 6, seed_).check(seed_).accepted());
            QVERIFY(normal_product<double>(5, k, 6, seed_).check(seed_).accepted());
            QVERIFY(any_bits_product<int32_t>(5, k, 6, seed_).check(seed_).accepted());
        }
    }

    void empty_matrices_are_accepted_and_leave_no_doubt() {
        for (const auto& [m, k, n] : {std::array<int64_t, 3>{0, 3, 4}, std::array<int64_t, 3>{3, 4, 0},
                                      std::array<int64_t, 3>{3, 0, 4}}) {
            const ProductVerdict verdict = normal_product<float>(m, k, n, seed_).check(seed_);
            QVERIFY(verdict.accepted());
            QCOMPARE(verdict.escape_probability, 0.0);
        }
    }

    void without_terms_every_element_is_positive_zero() {
        CheckedProduct product = normal_product<float>(3, 0, 4, seed_);
        product.c.as<float>()[7] = -0.0f;
        const ProductVerdict verdict = product.check(seed_);
        QVERIFY(!verdict.accepted());
        QVERIFY((*verdict.conviction == ProductConviction{1, 3, 0, 0x80000000}));
    }

    void numbers_that_are_not_finite_are_accepted_where_they_belong() {
        CheckedProduct product = checked_product<float>(60, 50, 40, [&](Tensor& a, Tensor& b) {
            std::mt19937_64 random(seed_);
            families::normal<float>(random, a, b);
            a.as<float>()[3 * 50 + 7] = not_a_number;   // row 3
            a.as<float>()[9 * 50 + 8] = -infinity;      // row 9
            b.as<float>()[4 * 40 + 11] = infinity;      // column 11
            b.as<float>()[6 * 40 + 13] = not_a_number;  // column 13
        });
        const ProductVerdict verdict = product.check(seed_);
        QVERIFY(verdict.accepted());
        QVERIFY(verdict.rows_recomputed >= 1 && verdict.rows_recomputed <= 3);  // row 9, and a worst row
        QVERIFY(verdict.elements_recomputed >= 60);                             // column 11
        QVERIFY(std::isfinite(verdict.absolute_bound));
    }

    // 10^38 · 10^38 leaves f32, and 10^300 · 10^300 leaves what the check of f64 computes with.
    void overflow_leads_to_recomputation_and_nothing_else() {
        const ProductVerdict f32 = checked_product<float>(20, 30, 10, [](Tensor& a, Tensor& b) {
                                       families::fill_each<float>(a, [] { return 1e38; });
                                       families::fill_each<float>(b, [] { return 1e38; });
                                   }).check(seed_);
        QVERIFY(f32.accepted());
        QCOMPARE(f32.rows_recomputed, 20);
        QCOMPARE(f32.escape_probability, 0.0);
        const ProductVerdict f64 = checked_product<double>(20, 30, 10, [](Tensor& a, Tensor& b) {
                                       families::fill_each<double>(a, [] { return 1e300; });
                                       families::fill_each<double>(b, [] { return 1e300; });
                                   }).check(seed_);
        QVERIFY(f64.accepted());
        QCOMPARE(f64.rows_recomputed, 20);
    }

    void the_largest_finite_numbers_are_accepted() {
        QVERIFY(checked_product<double>(20, 3, 10,
                                        [](Tensor& a, Tensor& b) {
                                            families::fill_each<double>(a, [] { return 1e-300; });
                                            families::fill_each<double>(
                                                b, [] { return std::numeric_limits<double>::max(); });
                                        })
                    .check(seed_)
                    .accepted());
        QVERIFY(checked_product<double>(20, 3, 10,
                                        [](Tensor& a, Tensor& b) {
                                            families::fill_each<double>(
                                                a, [] { return std::numeric_limits<double>::max(); });
                                            families::fill_each<double>(
                                                b, [] { return std::numeric_limits<double>::denorm_min(); });
                                        })
                    .check(seed_)
                    .accepted());
    }

    void floats_come_with_bounds_and_integers_with_bits() {
        const ProductVerdict f32 = normal_product<float>(100, 100, 100, seed_).check(seed_);
        QCOMPARE(f32.escape_probability, 1e-6);
        QVERIFY(f32.relative_bound > 0 && f32.relative_bound < 1e-3);
        QVERIFY(f32.absolute_bound > 0 && f32.absolute_bound < 0.1);
        const ProductVerdict i8 = any_bits_product<int8_t>(100, 100, 100, seed_).check(seed_);
        QVERIFY(i8.escape_probability > 0 && i8.escape_probability < 1e-7);
        QCOMPARE(i8.absolute_bound, 0.0);
        const ProductVerdict wrapping = any_bits_product<int32_t>(100, 100, 100, seed_).check(seed_);
        QCOMPARE(wrapping.escape_probability, 0x1p-20);
    }

    void a_smaller_escape_probability_widens_the_bound() {
        const CheckedProduct product = normal_product<float>(100, 100, 100, seed_);
        const auto bound = [&](double probability) {
            return product
                .check({.secret = seeded_secret(seed_), .escape_probability = probability, .stop = {}})
                .absolute_bound;
        };
        QVERIFY(bound(1e-12) > 20 * bound(1e-6));
        QVERIFY(std::isinf(bound(1e-40)));
    }

    void operands_may_come_in_blocks_that_fit_a_megabyte() {
        std::mt19937_64 random(seed_);
        CheckedProduct product = checked_product<float>(
            700, 900, 800, [&](Tensor& a, Tensor& b) { families::normal<float>(random, a, b); });
        const CopyingSource a(product.a), b(product.b), c(product.c);
        ProductChecker checker(2);
        const ProductVerdict verdict = checker.check(a, b, c, {.secret = seeded_secret(seed_), .stop = {}});
        QVERIFY(verdict.accepted());
        QCOMPARE(verdict.absolute_bound, product.check(seed_).absolute_bound);
        const uint64_t limit = verdict.rows_recomputed > 0 ? 16u << 20 : 1u << 20;
        for (const CopyingSource* source : {&a, &b, &c}) QVERIFY(source->largest_bytes <= limit);
    }

    void matrices_that_do_not_fit_together_are_refused() {
        const CheckedProduct product = normal_product<float>(4, 5, 6, seed_);
        ProductChecker checker(1);
        const MemoryMatrix a(product.a), b(product.b), c(product.c);
        VERIFY_REFUSED(checker.check(b, a, c), "as many columns on the left");
        VERIFY_REFUSED(checker.check(a, b, b), "expected a product f32[4, 6] to check, found f32[5, 6]");
    }

    void probabilities_that_are_none_are_refused() {
        const CheckedProduct product = normal_product<float>(4, 5, 6, seed_);
        for (const double probability : {0.0, 1.0, -1.0, std::nan("")})
            VERIFY_REFUSED(product.check({.secret = {}, .escape_probability = probability, .stop = {}}),
                           "expected an escape probability between 0 and 1");
    }

    void a_stopped_check_throws() {
        std::stop_source stop;
        stop.request_stop();
        const CheckedProduct product = normal_product<float>(40, 50, 60, seed_);
        const auto check = [&] { product.check({.secret = seeded_secret(seed_), .stop = stop.get_token()}); };
        QCOMPARE(kind_of_error_of(check), ErrorKind::cancelled);
    }

    void what_a_source_throws_reaches_the_caller() {
        class BrokenSource : public MatrixSource {
          public:
            BrokenSource() : MatrixSource(DType::f32, 50, 60) {}
            MatrixView view(const Block&, Workspace&) const override {
                throw Error(ErrorKind::io, "the disk is gone");
            }
        };
        const CheckedProduct product = normal_product<float>(40, 50, 60, seed_);
        ProductChecker checker(2);
        VERIFY_REFUSED(checker.check(MemoryMatrix(product.a), BrokenSource(), MemoryMatrix(product.c)),
                       "the disk is gone");
    }

  private:
    template <typename T>
    void honest_families() {
        for (const auto& family : product_families<T>)
            for (const int64_t k : {100, 1000}) {
                std::mt19937_64 random(seed_);
                const CheckedProduct product =
                    checked_product<T>(60, k, 50, [&](Tensor& a, Tensor& b) { family.fill(random, a, b); });
                const ProductVerdict verdict = product.check(seed_);
                QVERIFY2(verdict.accepted(), family.name.data());
                if (!family.hostile) QVERIFY2(verdict.rows_recomputed <= 1, family.name.data());
            }
    }

    template <typename T>
    void any_bits_accepted(int64_t m, int64_t k, int64_t n, uint64_t seed) {
        const QString shape =
            QString("%1x%2x%3 of %4").arg(m).arg(k).arg(n).arg(dtype_info(dtype_of<T>()).name.data());
        QVERIFY2(any_bits_product<T>(m, k, n, seed).check(seed).accepted(), qPrintable(shape));
    }

    uint64_t seed_ = any_seed();
};

QTEST_APPLESS_MAIN(TestProductCheck)
#include "test_product_check.moc"
