// What a randomised check could miss, tried on the whole system under policy product: a contributor commits
// to spoilt numbers and sends them over HTTPS. Integers come out right to the last bit. Floats are right, or
// off by no more than the delta that the report prints.
#include <QTest>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor/npy_reader.hpp"
#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

namespace {

constexpr int64_t rows = 120, depth = 150, cols = 120;
constexpr const char* tile = "60x60";
constexpr float infinity = std::numeric_limits<float>::infinity();

// Elements of a matrix.
template <typename T>
T& at(Tensor& matrix, int64_t row, int64_t col) {
    return matrix.as<T>()[static_cast<size_t>(row * matrix.shape()[1] + col)];
}

void leave(Tensor&, Tensor&) {}

void one_infinity(Tensor& a, Tensor&) {
    at<float>(a, 7, 11) = infinity;
    at<float>(a, 70, 12) = -infinity;
}

void one_column_of_each_tile_times_a_hundred_million(Tensor&, Tensor& b) {
    for (int64_t k = 0; k < depth; ++k)
        for (const int64_t col : {17, 77}) at<float>(b, k, col) *= 1e8f;
}

void all_zero(Tensor& c) {
    std::memset(c.bytes().data(), 0, c.size_bytes());
}

void all_nan(Tensor& c) {
    for (float& x : c.as<float>()) x = std::numeric_limits<float>::quiet_NaN();
}

void some_columns_zeroed(Tensor& c) {
    for (int64_t row = 0; row < c.shape()[0]; ++row)
        for (const int64_t col : {3, 30, 59}) at<float>(c, row, col) = 0;
}

void two_errors_that_cancel(Tensor& c) {
    at<float>(c, 5, 3) += 1000;
    at<float>(c, 5, 4) -= 1000;
    at<float>(c, 6, 8) += 1000;
    at<float>(c, 6, 9) += 1000;
}

void two_errors_that_cancel_in_integers(Tensor& c) {
    at<int32_t>(c, 5, 3) ^= 1;
    at<int32_t>(c, 5, 4) ^= 1;
}

void one_sign_in_a_hundred(Tensor& c) {
    for (size_t i = 50; i < c.as<float>().size(); i += 100) c.as<float>()[i] *= -1;
}

void one_bit_of_each_row(Tensor& c) {
    for (int64_t row = 0; row < c.shape()[0]; ++row)
        at<int32_t>(c, row, row * 7 % c.shape()[1]) ^= int32_t{1} << (row % 31);
}

void one_top_bit_of_each_row(Tensor& c) {
    for (int64_t row = 0; row < c.shape()[0]; ++row)
        at<int64_t>(c, row, row * 7 % c.shape()[1]) ^= std::numeric_limits<int64_t>::min();
}

struct Attack {
    const char* name;
    DType dtype;
    void (*prepare)(Tensor& a, Tensor& b);
    void (*spoil)(Tensor& c);
};

const Attack attacks[] = {
    {"all zero", DType::f32, leave, all_zero},
    {"all zero, an infinity in an operand", DType::f32, one_infinity, all_zero},
    {"all NaN", DType::f32, leave, all_nan},
    {"all NaN, an infinity in an operand", DType::f32, one_infinity, all_nan},
    {"zeroed columns beside one scaled by 1e8", DType::f32, one_column_of_each_tile_times_a_hundred_million,
     some_columns_zeroed},
    {"two errors that cancel under ±1", DType::f32, leave, two_errors_that_cancel},
    {"two errors that cancel, integers", DType::i32, leave, two_errors_that_cancel_in_integers},
    {"1 % of the signs flipped", DType::f32, leave, one_sign_in_a_hundred},
    {"one bit in each row, i32", DType::i32, leave, one_bit_of_each_row},
    {"one bit in each row, i8", DType::i8, leave, one_bit_of_each_row},
    {"one bit in each row, i64", DType::i64, leave, one_top_bit_of_each_row},
};

// Empty when every element has the right bits or, for floats, is off by at most delta.
std::string further_off_than(double delta, const ProductFiles& files) {
    const std::string wrong = files.wrong_output();
    if (wrong.empty() || files.expected().dtype() != DType::f32) return wrong;
    const Tensor found = NpyReader(files.output()).read_all();
    for (size_t i = 0; i < found.as<float>().size(); ++i) {
        const float is = found.as<float>()[i];
        const float expected = files.expected().as<float>()[i];
        if (std::memcmp(&is, &expected, sizeof is) == 0) continue;
        const double off = std::abs(static_cast<double>(is) - static_cast<double>(expected));
        if (!(off <= delta))
            return fmt::format("element {}: expected {} within {}, found {}", i, expected, delta, is);
    }
    return {};
}

}  // namespace

class TestProductAttacks : public QObject {
    Q_OBJECT

  private slots:
    void spoilt_numbers_are_refused_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(attacks); ++i) QTest::newRow(attacks[i].name) << static_cast<int>(i);
    }
    void spoilt_numbers_are_refused() {
        QFETCH(int, row);
        const Attack& attack = attacks[row];
        const uint64_t seed = printed_seed();
        Tensor a = random_matrix(attack.dtype, rows, depth, seed);
        Tensor b = random_matrix(attack.dtype, depth, cols, seed + 1);
        attack.prepare(a, b);
        LabWithHonestOnes all;
        Contributor liar(all.lab, attack.name, [&](Work& work) { attack.spoil(work.outputs[0]); });
        const Job job(all, a, b, {.policy = "product", .tile = tile});
        QVERIFY(liar.take_task());
        Crew crew;
        for (Contributor* each : {&liar, &all.alice, &all.bob}) crew.add(*each);
        const lab::Json status = all.lab.wait_for_job(job.id());
        crew.rest();
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        const lab::Json& verification = status["verification"];
        QCOMPARE(verification["policy"].get<std::string>(), std::string("product"));
        QCOMPARE(verification["bits_promised"].get<bool>(), attack.dtype != DType::f32);
        VERIFY_EMPTY(further_off_than(verification.value("delta", 0.0), job.files()));
        QVERIFY2(all.show(liar)["disagreed"].get<int>() > 0, job.history().c_str());
        QVERIFY(!liar.convictions.empty());
        for (const Contributor* honest : {&all.alice, &all.bob}) VERIFY_EMPTY(all.disagreements(*honest));
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestProductAttacks)
#include "test_product_attacks.moc"
