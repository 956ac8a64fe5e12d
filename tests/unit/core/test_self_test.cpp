// The self-test accepts the engines that keep the contract, and says what each kind of broken engine lacks.
#include <QtTest>
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>

#include "core/arithmetic/product.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/reference/reference_engine.hpp"
#include "core/engine/self_test.hpp"
#include "core/error.hpp"

using namespace goblin;

namespace {

using FloatProduct = std::function<float(Strided<float> a, Strided<float> b, int64_t depth)>;

// Right for every type but f32, whose elements come from `element`.
class BrokenEngine : public Engine {
  public:
    explicit BrokenEngine(FloatProduct element) : element_(std::move(element)) {}
    std::string_view name() const override { return "broken"; }
    std::optional<std::string> why_not(const Graph&) const override { return std::nullopt; }
    uint64_t memory_needed_bytes(const Graph& graph) const override {
        return right_->memory_needed_bytes(graph);
    }
    std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs,
                            const RunControl& control) override {
        if (inputs[0].dtype() != DType::f32) return right_->run(graph, inputs, control);
        const int64_t depth = inputs[0].shape()[1];
        const int64_t columns = inputs[1].shape()[1];
        std::vector<Tensor> outputs;
        outputs.emplace_back(output_specs(graph)[0]);
        int64_t index = 0;
        for (float& value : outputs[0].as<float>()) {
            value = element_({inputs[0].as<float>().data() + index / columns * depth, 1},
                             {inputs[1].as<float>().data() + index % columns, columns}, depth);
            ++index;
        }
        return outputs;
    }

  private:
    FloatProduct element_;
    std::unique_ptr<Engine> right_ = make_cpu_engine({.threads = 1});
};

float flushed(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

float unfused(Strided<float> a, Strided<float> b, int64_t depth) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
        const float product = a[k] * b[k];
        sum += product;
    }
    return std::isnan(sum) ? canonical_nan<float>() : sum + 0.0f;
}

float one_long_chain(Strided<float> a, Strided<float> b, int64_t depth) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum = std::fma(a[k], b[k], sum);
    return std::isnan(sum) ? canonical_nan<float>() : sum + 0.0f;
}

QString lacking(Engine& engine) {
    QStringList lines;
    for (const std::string& line : self_test(engine).lacking) lines << QString::fromStdString(line);
    return lines.join('\n');
}

}  // namespace

class TestSelfTest : public QObject {
    Q_OBJECT
  private slots:
    void the_reference_engine_knows_all_answers() {
        const auto engine = make_reference_engine();
        const SelfTestReport report = self_test(*engine);
        QVERIFY(report.lacking.empty());
        QCOMPARE(report.exact_products.size(), size_t{6});
    }
    void every_vector_target_knows_the_answers_of_the_types_it_takes() {
        for (const std::string& target : cpu_vector_targets()) {
            const auto engine = make_cpu_engine({.threads = 2, .vector_target = target});
            const SelfTestReport report = self_test(*engine);
            for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8})
                QCOMPARE(report.takes_products_of(dtype), !engine->why_no_product(dtype));
        }
    }
    void an_engine_without_fma_is_told_so_and_keeps_the_integers() {
        BrokenEngine engine(unfused);
        QVERIFY(lacking(engine).contains("f32: has no fused multiply-add"));
        const SelfTestReport report = self_test(engine);
        QVERIFY(!report.takes_products_of(DType::f32));
        QVERIFY(report.takes_products_of(DType::f64));
        QVERIFY(report.takes_products_of(DType::i32));
    }
    void flushed_results_are_noticed() {
        BrokenEngine engine(
            [](auto a, auto b, int64_t depth) { return flushed(product_element<float>(a, b, depth)); });
        const QString found = lacking(engine);
        QVERIFY2(found.contains("f32: flushes results that are subnormal to zero"), qPrintable(found));
        QVERIFY2(!found.contains("reads subnormal numbers as zero"), qPrintable(found));
    }
    void flushed_operands_are_noticed() {
        BrokenEngine engine([](Strided<float> a, Strided<float> b, int64_t depth) {
            std::vector<float> row, column;
            for (int64_t k = 0; k < depth; ++k) row.push_back(flushed(a[k])), column.push_back(flushed(b[k]));
            return product_element<float>({row.data(), 1}, {column.data(), 1}, depth);
        });
        const QString found = lacking(engine);
        QVERIFY2(found.contains("f32: reads subnormal numbers as zero"), qPrintable(found));
    }
    void one_chain_without_chunks_is_noticed() {
        BrokenEngine engine(one_long_chain);
        QCOMPARE(lacking(engine), QString("f32: does not start a new sum after 4096 products"));
    }
    void another_rounding_is_noticed() {
        BrokenEngine engine([](auto a, auto b, int64_t depth) {
            std::fesetround(FE_TOWARDZERO);
            const float value = product_element<float>(a, b, depth);
            std::fesetround(FE_TONEAREST);
            return value;
        });
        const QString found = lacking(engine);
        QVERIFY2(found.contains("f32: does not round"), qPrintable(found));
    }
    void another_nan_is_noticed() {
        BrokenEngine engine([](auto a, auto b, int64_t depth) {
            const float value = product_element<float>(a, b, depth);
            return std::isnan(value) ? -value : value;
        });
        QVERIFY(lacking(engine).contains("f32: does not give the contract's NaN for a NaN"));
    }
    void minus_zero_is_noticed() {
        BrokenEngine engine([](auto a, auto b, int64_t depth) {
            const float value = product_element<float>(a, b, depth);
            return value == 0 && depth == 1 ? a[0] * b[0] : value;
        });
        QVERIFY(lacking(engine).contains("f32: gives -0"));
    }
    void a_single_wrong_bit_in_a_large_product_is_noticed() {
        int elements = 0;
        BrokenEngine engine([&](Strided<float> a, Strided<float> b, int64_t depth) {
            const float value = product_element<float>(a, b, depth);
            const bool wrong = depth == 4200 && ++elements == 1000;
            return wrong ? std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ 1) : value;
        });
        QCOMPARE(lacking(engine), QString("f32: gives wrong bits in a product [29, 4200] x [4200, 37]"));
    }
    void an_engine_that_throws_lacks_what_it_was_asked() {
        BrokenEngine engine(
            [](auto, auto, int64_t) -> float { throw Error(ErrorKind::io, "the device is gone"); });
        QVERIFY(lacking(engine).startsWith("f32: the device is gone"));
    }
};

QTEST_APPLESS_MAIN(TestSelfTest)
#include "test_self_test.moc"
