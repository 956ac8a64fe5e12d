// Operands at the edges, computed by a real worker for `goblin-lab product`: infinities and NaN, nothing at
// all, one element, no depth. Each element has the contract's bits, as the reference engine computes them.
#include <QTest>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

struct Size {
    const char* name;
    int64_t rows, depth, cols;
};

constexpr Size sizes[] = {
    {"ordinary", 33, 17, 29},     {"one by one", 1, 1, 1},       {"no depth", 5, 0, 7},
    {"no rows", 0, 4, 6},         {"no columns", 6, 4, 0},       {"nothing at all", 0, 0, 0},
    {"one row, deep", 1, 300, 3}, {"an outer product", 9, 1, 8},
};

constexpr DType dtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8};

// Infinities of both signs, NaN of both signs and with a payload, zeros of both signs, the smallest and
// largest numbers: in rows and columns that others have finite numbers in.
template <typename T, typename Bits>
void strew_special_numbers(Tensor& matrix) {
    using Limits = std::numeric_limits<T>;
    const Bits payload = std::bit_cast<Bits>(Limits::quiet_NaN()) | 0x1234;
    const T special[] = {Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         -Limits::quiet_NaN(),
                         std::bit_cast<T>(payload),
                         T{0},
                         -T{0},
                         Limits::denorm_min(),
                         -Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::min()};
    const std::span<T> all = matrix.as<T>();
    for (size_t i = 0; i < all.size(); i += 13) all[i] = special[i / 13 % std::size(special)];
}

void strew(Tensor& matrix) {
    if (matrix.dtype() == DType::f32) strew_special_numbers<float, uint32_t>(matrix);
    if (matrix.dtype() == DType::f64) strew_special_numbers<double, uint64_t>(matrix);
}

}  // namespace

class TestOperands : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        lab_ = std::make_unique<LabProcess>();
        worker_ = std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        lab_->wait_for_contributors(1);
    }

    void every_size_and_type_has_the_contracts_bits_data() {
        QTest::addColumn<int>("size");
        QTest::addColumn<int>("dtype");
        for (size_t size = 0; size < std::size(sizes); ++size)
            for (const DType dtype : dtypes)
                QTest::addRow("%s, %s", sizes[size].name, std::string(name_of(dtype)).c_str())
                    << static_cast<int>(size) << static_cast<int>(dtype);
    }
    void every_size_and_type_has_the_contracts_bits() {
        QFETCH(int, size);
        QFETCH(int, dtype);
        const Size& chosen = sizes[size];
        const auto type = static_cast<DType>(dtype);
        check(random_matrix(type, chosen.rows, chosen.depth, 1),
              random_matrix(type, chosen.depth, chosen.cols, 2));
    }

    void infinities_and_nan_have_the_contracts_bits_data() {
        QTest::addColumn<int>("size");
        QTest::addColumn<int>("dtype");
        for (const DType dtype : {DType::f32, DType::f64})
            for (const size_t size : {0, 1, 6, 7})
                QTest::addRow("%s, %s", sizes[size].name, std::string(name_of(dtype)).c_str())
                    << static_cast<int>(size) << static_cast<int>(dtype);
    }
    void infinities_and_nan_have_the_contracts_bits() {
        QFETCH(int, size);
        QFETCH(int, dtype);
        const Size& chosen = sizes[size];
        const auto type = static_cast<DType>(dtype);
        Tensor a = random_matrix(type, chosen.rows, chosen.depth, 1);
        Tensor b = random_matrix(type, chosen.depth, chosen.cols, 2);
        strew(a);
        check(a, b, "product");
        strew(b);
        check(a, b, "recompute");
    }

    void nobody_was_found_wrong() {
        for (const lab::Json& node : lab_->ask("node.list"))
            QCOMPARE(node["disagreed"].get<int>() + node["failed"].get<int>(), 0);
        QCOMPARE(worker_->stop(), 0);
        QCOMPARE(lab_->stop(), 0);
    }

  private:
    // As a person would type it, with the policy that the lab chooses or another one.
    void check(const Tensor& a, const Tensor& b, const std::string& policy = "auto") {
        const ProductFiles files(lab_->files(), fmt::format("product-{}", ++count_), a, b);
        const Finished done = lab_->command({"product", files.a().string(), files.b().string(), "-o",
                                             files.output().string(), "--verify", policy, "--tile", "16x16"});
        QVERIFY2(done.exit_code == 0, done.errors.c_str());
        const std::string wrong = files.wrong_output();
        QVERIFY2(wrong.empty(), (wrong + done.output).c_str());
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<WorkerProcess> worker_;
    int count_ = 0;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestOperands)
#include "test_operands.moc"
