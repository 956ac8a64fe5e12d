// The parts of the product check by themselves: secrets, projections on every vector target, and doubt.
#include <hwy/highway.h>
#include <QtTest>
#include <cmath>
#include <limits>
#include <set>

#include "core/check/doubt.hpp"
#include "core/check/integer_projection.hpp"
#include "core/check/projection.hpp"
#include "core/check/secret.hpp"
#include "tests/support/checked_product.hpp"

using namespace goblin;

namespace {

__extension__ typedef __int128 Int128;
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quad;
#else
using Quad = long double;  // 113 bits where the compiler has no other name for them
#endif

constexpr double infinity = std::numeric_limits<double>::infinity();

// Runs the test once for each vector target that was compiled and that this processor has.
template <typename Test>
void on_every_target(Test test) {
    for (int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets);
        hwy::GetChosenTarget().DeInit();
        test(hwy::TargetName(targets & -targets));
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
}

template <typename T>
std::vector<T> random_numbers(std::mt19937_64& random, int64_t count) {
    std::normal_distribution<double> draw;
    std::vector<T> numbers(static_cast<size_t>(count));
    for (T& number : numbers) number = static_cast<T>(draw(random));
    return numbers;
}

}  // namespace

class TestProductCheckParts : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase() { qInfo("seed %llu", static_cast<unsigned long long>(seed_)); }

    void signed_units_are_odd_multiples_of_a_24th_power() {
        const SecretSource source = seeded_secret(seed_);
        SecretDraws draws(source);
        double sum = 0, least = 1, most = -1;
        for (const double unit : draws.signed_units(100'000)) {
            const double steps = unit * 0x1p24;
            QVERIFY(std::abs(unit) < 1 && std::fmod(std::abs(steps), 2) == 1);
            sum += unit;
            least = std::min(least, unit);
            most = std::max(most, unit);
        }
        QVERIFY(std::abs(sum / 100'000) < 0.01 && least < -0.999 && most > 0.999);
    }

    void primes_are_prime_and_of_31_bits() {
        const SecretSource source = seeded_secret(seed_);
        SecretDraws draws(source);
        std::set<uint32_t> seen;
        for (int i = 0; i < 50; ++i) {
            const uint32_t prime = draws.prime();
            QVERIFY(prime > 0x40000000u && prime < 0x80000000u);
            for (uint32_t divisor = 2; uint64_t{divisor} * divisor <= prime; ++divisor)
                QVERIFY(prime % divisor != 0);
            seen.insert(prime);
        }
        QVERIFY(seen.size() > 45);
    }

    void bounded_draws_reach_every_number_and_none_beyond() {
        const SecretSource source = seeded_secret(seed_);
        SecretDraws draws(source);
        std::set<uint64_t> below_five;
        for (int i = 0; i < 500; ++i) below_five.insert(draws.below(5));
        QCOMPARE(below_five, (std::set<uint64_t>{0, 1, 2, 3, 4}));
        QCOMPARE(draws.below(1), uint64_t{0});
        for (const uint32_t word : draws.all_below(1'500'000'000, 1000)) QVERIFY(word < 1'500'000'000);
    }

    void float_projections_are_exact_to_their_precision_on_every_target() {
        on_every_target([&](const char* target) {
            for (const int64_t cols : {1, 3, 8, 31, 64, 200}) {
                project_floats<float>(5, cols, 0x1p-53, target);
                // f64 is projected with twice its precision, which only targets with fma can.
                if (QByteArray(target).startsWith("AVX")) project_floats<double>(5, cols, 0x1p-100, target);
            }
        });
    }

    void a_negative_zero_shows_in_whatever_column_it_stands() {
        on_every_target([&](const char* target) {
            for (int64_t col = 0; col < 40; ++col) {
                std::vector<float> c(3 * 40, 0.0f);
                c[static_cast<size_t>(40 + col)] = -0.0f;
                const std::vector<double> x(secret_vectors * 40, 1.0);
                std::vector<double> sum(secret_vectors * 3), measure(3);
                project(RowsOf::c, c.data(), 40,
                        {.rows = 3,
                         .cols = 40,
                         .vector = x.data(),
                         .vector_stride = 40,
                         .sum = sum.data(),
                         .sum_stride = 3,
                         .measure = measure.data()});
                QVERIFY2(measure[0] == 0 && measure[1] != 0 && measure[2] == 0, target);
            }
        });
    }

    void integer_projections_are_exact_on_every_target() {
        on_every_target([&](const char* target) {
            for (const int64_t cols : {1, 7, 64, 3000}) {
                project_integers<int8_t>(cols, target);
                project_integers<uint8_t>(cols, target);
                project_integers<int32_t>(cols, target);
                project_integers<int64_t>(cols, target);
                QVERIFY2(magnitudes_agree<int32_t>(cols) && magnitudes_agree<int64_t>(cols), target);
            }
        });
    }

    void the_extremes_of_every_type_overflow_no_sum() {
        on_every_target([&](const char* target) {
            project_extremes<int8_t>(10'000, target);
            project_extremes<uint8_t>(10'000, target);
            project_extremes<int32_t>(600'000, target);  // more than are summed without a break
            project_extremes<int64_t>(10'000, target);
        });
    }

    void rungs_cover_levels_and_end_at_lambda() {
        QCOMPARE(rung_over(doubt_level), doubt_level);
        QCOMPARE(rung_over(doubt_level / 2), doubt_level / 2);
        QCOMPARE(rung_over(doubt_level / 1.9), doubt_level);
        QCOMPARE(rung_over(0), std::ldexp(doubt_level, 1 - level_rungs));
        QCOMPARE(rung_over(std::nextafter(doubt_level, infinity)), infinity);
        QCOMPARE(rung_over(std::numeric_limits<double>::quiet_NaN()), infinity);
    }

    void rows_above_lambda_and_rows_without_a_level_are_always_doubted() {
        std::vector<double> levels(100, 1.0);
        levels[7] = doubt_level * 1.01;
        levels[30] = infinity;
        levels[60] = std::numeric_limits<double>::quiet_NaN();
        const Doubted doubted = doubt(levels);
        QVERIFY(doubted.rows.size() >= 3);
        QVERIFY((std::vector<int64_t>(doubted.rows.begin(), doubted.rows.begin() + 3) ==
                 std::vector<int64_t>{30, 60, 7}));
        QCOMPARE(doubted.largest_level, 1.0);
        QCOMPARE(doubted.rung, doubt_level / 32);
    }

    void the_rows_that_stand_out_most_are_doubted_and_the_rest_raises_the_rung() {
        std::vector<double> levels(2000, 0.01);
        levels[10] = 5;
        levels[20] = 4;
        levels[30] = 3;
        const Doubted doubted = doubt(levels);
        QCOMPARE(doubted.rows, (std::vector<int64_t>{10, 20}));
        QCOMPARE(doubted.largest_level, 3.0);
        QCOMPARE(doubted.rung, 5.0);
    }

    void rows_alike_are_doubted_now_and_then_and_one_in_a_thousand_at_most() {
        const std::vector<double> levels(1000, 0.01);
        int64_t rows = 0;
        for (uint64_t i = 0; i < 1000; ++i) {
            const SecretSource source = seeded_secret(seed_ + i);
            SecretDraws draws(source);
            rows += static_cast<int64_t>(doubted_rows(levels, draws).rows.size());
        }
        QVERIFY2(rows > 20 && rows < 200, qPrintable(QString::number(rows)));
    }

    void when_all_rows_are_doubted_none_is_bounded() {
        const Doubted doubted = doubt(std::vector<double>(10, infinity));
        QCOMPARE(doubted.rows.size(), size_t{10});
        QCOMPARE(doubted.rung, 0.0);
    }

  private:
    Doubted doubt(const std::vector<double>& levels) {
        const SecretSource source = seeded_secret(seed_);
        SecretDraws draws(source);
        return doubted_rows(levels, draws);
    }

    // Compared with sums in 113-bit floats; the check's bounds count on this roundoff for each term.
    template <typename T>
    void project_floats(int64_t rows, int64_t cols, double roundoff, const char* target) {
        const auto c = random_numbers<T>(random_, rows * cols);
        const auto x = random_numbers<double>(random_, secret_vectors * cols);
        std::vector<double> low;
        if (sizeof(T) == 8)
            for (const double number : x) low.push_back(number * 0x1p-60);
        const auto weight = random_numbers<T>(random_, cols);
        for (const RowsOf rows_of : {RowsOf::a, RowsOf::b, RowsOf::c}) {
            std::vector<double> sum(static_cast<size_t>(secret_vectors * rows), 1.0),
                sum_low(sum.size(), 0x1p-70);
            std::vector<double> measure(static_cast<size_t>(rows));
            std::vector<T> column_norm2(static_cast<size_t>(cols));
            project(rows_of, c.data(), cols,
                    Projection<T>{.rows = rows,
                                  .cols = cols,
                                  .vector = x.data(),
                                  .vector_low = low.empty() ? nullptr : low.data(),
                                  .vector_stride = cols,
                                  .weight = weight.data(),
                                  .sum = sum.data(),
                                  .sum_low = sum_low.data(),
                                  .sum_stride = rows,
                                  .measure = measure.data(),
                                  .column_norm2 = column_norm2.data()});
            for (int64_t row = 0; row < rows; ++row) {
                Quad measured = 0;
                double measured_magnitude = 0;
                for (int64_t j = 0; j < cols; ++j) {
                    const Quad element = c[static_cast<size_t>(row * cols + j)];
                    const Quad by = weight[static_cast<size_t>(j)];
                    Quad term = 0;
                    if (rows_of == RowsOf::a) term = (element < 0 ? -element : element) * by;
                    if (rows_of == RowsOf::b) term = element * by * element * by;
                    measured += term;
                    measured_magnitude += std::abs(static_cast<double>(term));
                }
                QVERIFY2(std::abs(static_cast<double>(measured - measure[static_cast<size_t>(row)])) <=
                             std::numeric_limits<T>::epsilon() * static_cast<double>(cols + 4) *
                                 measured_magnitude,
                         target);
                for (int64_t v = 0; v < secret_vectors; ++v) {
                    const auto at = static_cast<size_t>(v * rows + row);
                    Quad expected = 1;
                    if (sizeof(T) == 8) expected += 0x1p-70;
                    double magnitude = 1;
                    for (int64_t j = 0; j < cols; ++j) {
                        const auto in_x = static_cast<size_t>(v * cols + j);
                        Quad vector = x[in_x];
                        if (!low.empty()) vector += low[in_x];
                        const Quad term = vector * c[static_cast<size_t>(row * cols + j)];
                        expected += term;
                        magnitude += std::abs(static_cast<double>(term));
                    }
                    Quad found = sum[at];
                    if (sizeof(T) == 8) found += sum_low[at];
                    const double error = std::abs(static_cast<double>(found - expected));
                    QVERIFY2(error <= roundoff * static_cast<double>(cols + 8) * magnitude, target);
                }
            }
        }
    }

    template <typename T>
    std::vector<T> random_integers(int64_t cols) {
        std::vector<T> row(static_cast<size_t>(cols));
        for (T& element : row) element = static_cast<T>(random_());
        return row;
    }

    template <typename T>
    void project_integers(int64_t cols, const char* target) {
        const SecretSource source = seeded_secret(random_());
        SecretDraws draws(source);
        const std::vector<T> row = random_integers<T>(cols);
        project_on_field(row, draws.prime(), draws, target);
        project_wrapping<uint32_t>(row, draws, target);
        project_wrapping<uint64_t>(row, draws, target);
    }

    template <typename T>
    void project_extremes(size_t length, const char* target) {
        const SecretSource source = seeded_secret(seed_);
        SecretDraws draws(source);
        for (const T extreme : {std::numeric_limits<T>::max(), std::numeric_limits<T>::min()})
            project_on_field(std::vector<T>(length, extreme), 0x7fffffff, draws, target);
    }

    template <typename T>
    void project_on_field(const std::vector<T>& row, uint32_t prime, SecretDraws& draws, const char* target) {
        const auto cols = static_cast<int64_t>(row.size());
        const PrimeField field{prime};
        const std::vector<uint32_t> x = draws.all_below(prime, row.size());
        Int128 expected = 17;
        for (size_t j = 0; j < row.size(); ++j) expected += static_cast<Int128>(row[j]) * x[j];
        expected = (expected % prime + prime) % prime;
        uint32_t sum = 17;
        field.add_row(row.data(), cols, field.operand(x), 0, &sum, 1);
        QVERIFY2(sum == static_cast<uint32_t>(expected), target);
    }

    template <typename Word, typename T>
    void project_wrapping(const std::vector<T>& row, SecretDraws& draws, const char* target) {
        using Ring = WrappingRing<Word>;
        const std::vector<Word> x = draws.words<Word>(row.size() * Ring::vectors);
        std::vector<Word> sum(Ring::vectors, 17);
        const Ring ring;
        ring.add_row(row.data(), static_cast<int64_t>(row.size()), ring.operand(x), 0, sum.data(), 1);
        for (size_t v = 0; v < sum.size(); ++v) {
            Word expected = 17;
            for (size_t j = 0; j < row.size(); ++j)
                expected += static_cast<Word>(static_cast<int64_t>(row[j])) * x[v * row.size() + j];
            QVERIFY2(sum[v] == expected, target);
        }
    }

    template <typename T>
    bool magnitudes_agree(int64_t cols) {
        std::vector<T> row = random_integers<T>(cols);
        if (random_() % 2 == 0) row[random_() % row.size()] = std::numeric_limits<T>::min();
        Int128 largest = 0;
        for (const T element : row)
            largest =
                std::max(largest, element < 0 ? -static_cast<Int128>(element) : static_cast<Int128>(element));
        return row_magnitude(row.data(), cols) == static_cast<uint64_t>(largest);
    }

    uint64_t seed_ = any_seed();
    std::mt19937_64 random_{seed_};
};

QTEST_APPLESS_MAIN(TestProductCheckParts)
#include "test_product_check_parts.moc"
