// What the engines promise beside the right bits: limits, cancel, progress, and clear refusals.
#include <QtTest>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <thread>

#include "core/arithmetic/product.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/reference/reference_engine.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

TensorSpec matrix(DType dtype, int64_t rows, int64_t columns) {
    return {dtype, Shape{rows, columns}};
}

Tensor ones(int64_t rows, int64_t columns) {
    Tensor tensor(DType::f32, Shape{rows, columns});
    for (float& value : tensor.as<float>()) value = 1;
    return tensor;
}

std::vector<Tensor> tensors(Tensor a, Tensor b) {
    std::vector<Tensor> both;
    both.push_back(std::move(a));
    both.push_back(std::move(b));
    return both;
}

std::unique_ptr<Engine> engine_called(const QString& name) {
    if (name == "reference") return make_reference_engine();
    return make_cpu_engine({.threads = 2});
}

int64_t peak_memory_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
    throw std::runtime_error("no VmHWM in /proc/self/status");
}

void forget_peak_memory() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

// Milliseconds that the process computes on from the request to stop until run() has thrown. Processor time,
// because a busy machine takes a thread its processor for longer than any bound.
int64_t milliseconds_to_stop(Engine& engine, std::span<const Tensor> inputs) {
    const auto milliseconds = [] { return int64_t{std::clock()} * 1000 / CLOCKS_PER_SEC; };
    std::stop_source stop;
    int64_t stopped_at_ms = 0;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        stopped_at_ms = milliseconds();
        stop.request_stop();
    });
    const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
    const ErrorKind kind = kind_of_error_of([&] { engine.run(graph, inputs, {.stop = stop.get_token()}); });
    const int64_t ended_at_ms = milliseconds();
    stopper.join();
    if (kind != ErrorKind::cancelled) throw std::logic_error("expected to be cancelled");
    return ended_at_ms - stopped_at_ms;
}

}  // namespace

class TestEngines : public QObject {
    Q_OBJECT

    void each_engine() {
        QTest::addColumn<QString>("name");
        QTest::addRow("reference") << "reference";
        QTest::addRow("cpu") << "cpu";
    }

  private slots:
    void a_product_is_computed_data() { each_engine(); }
    void a_product_is_computed() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const auto inputs = tensors(ones(3, 5), ones(5, 7));
        const auto outputs = engine->run(product_graph(inputs[0].spec(), inputs[1].spec()), inputs, {});
        QCOMPARE(outputs.size(), size_t{1});
        QCOMPARE(outputs[0].spec().text(), std::string("f32[3, 7]"));
        for (const float value : outputs[0].as<float>()) QCOMPARE(value, 5.0f);
    }

    void nodes_use_each_others_outputs_and_outputs_may_repeat_data() { each_engine(); }
    void nodes_use_each_others_outputs_and_outputs_may_repeat() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const Graph graph{{matrix(DType::f32, 2, 2), matrix(DType::f32, 2, 2)},
                          {Node{Operator::matmul, {0, 1}}, Node{Operator::matmul, {2, 2}}},
                          {3, 0, 2, 3}};
        const auto inputs = tensors(ones(2, 2), ones(2, 2));
        const auto outputs = engine->run(graph, inputs, {});
        QCOMPARE(outputs.size(), size_t{4});
        QCOMPARE(outputs[0].as<float>()[0], 8.0f);
        QCOMPARE(outputs[1].as<float>()[0], 1.0f);
        QCOMPARE(outputs[2].as<float>()[0], 2.0f);
        QVERIFY(outputs[3].same_bits(outputs[0]));
    }

    void inputs_must_be_what_the_graph_says_data() { each_engine(); }
    void inputs_must_be_what_the_graph_says() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const Graph graph = product_graph(matrix(DType::f32, 2, 3), matrix(DType::f32, 3, 2));
        VERIFY_REFUSED(engine->run(graph, {}, {}), "expected 2 inputs, found 0");
        VERIFY_REFUSED(engine->run(graph, tensors(ones(2, 3), ones(2, 3)), {}),
                       "expected f32[3, 2] as input 1, found f32[2, 3]");
    }

    void a_limit_on_memory_is_kept_before_anything_is_allocated_data() { each_engine(); }
    void a_limit_on_memory_is_kept_before_anything_is_allocated() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const auto inputs = tensors(ones(300, 20), ones(20, 300));
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        const uint64_t needed_bytes = engine->memory_needed_bytes(graph);
        QVERIFY(needed_bytes >= 300 * 300 * 4);
        QCOMPARE(
            kind_of_error_of([&] { engine->run(graph, inputs, {.memory_limit_bytes = needed_bytes - 1}); }),
            ErrorKind::memory);
        QCOMPARE(engine->run(graph, inputs, {.memory_limit_bytes = needed_bytes})[0].as<float>()[0], 20.0f);
    }

    void a_hostile_graph_takes_no_memory_data() { each_engine(); }
    void a_hostile_graph_takes_no_memory() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const int64_t huge = int64_t{1} << 20;
        Tensor none_left(DType::f32, Shape{huge, 0});
        Tensor none_right(DType::f32, Shape{0, huge});
        const Graph graph = product_graph(none_left.spec(), none_right.spec());
        QVERIFY(engine->memory_needed_bytes(graph) > uint64_t{4} << 40);
        QCOMPARE(kind_of_error_of([&] {
                     engine->run(graph, tensors(std::move(none_left), std::move(none_right)),
                                 {.memory_limit_bytes = uint64_t{1} << 30});
                 }),
                 ErrorKind::memory);
    }

    void the_cpu_engine_takes_no_more_memory_than_it_says() {
        const auto engine = make_cpu_engine({.threads = 2});
        const auto inputs = tensors(ones(12, 4096), ones(4096, 2048));
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        const auto needed_bytes = static_cast<int64_t>(engine->memory_needed_bytes(graph));
        QVERIFY(needed_bytes > 32 << 20);  // all of B is packed
        forget_peak_memory();
        const int64_t before_bytes = peak_memory_bytes();
        engine->run(graph, inputs, {});
        const int64_t taken_bytes = peak_memory_bytes() - before_bytes;
        // The sanitizers' own bookkeeping takes an eighth.
        QVERIFY2(taken_bytes <= needed_bytes + needed_bytes / 8 + (1 << 20),
                 qPrintable(QString::number(taken_bytes)));
        QVERIFY2(taken_bytes >= needed_bytes / 2, qPrintable(QString::number(taken_bytes)));
    }

    void buffers_of_an_earlier_run_count_too() {
        const auto engine = make_cpu_engine({.threads = 1});
        const Tensor a = ones(12, 4096), b = ones(4096, 2048);
        Tensor c(DType::f32, Shape{12, 2048});
        ProductOperands large{.rows = 12,
                              .depth = 4096,
                              .columns = 2048,
                              .a = a.bytes().data(),
                              .a_stride = 4096,
                              .b = b.bytes().data(),
                              .b_stride = 2048,
                              .c = c.bytes().data(),
                              .c_stride = 2048};
        engine->product(large, {});
        ProductOperands small = large;
        small.depth = small.columns = 10;
        QCOMPARE(engine->kept_memory_bytes(), engine->product_memory_bytes(large));
        engine->product(small, {});
        QCOMPARE(engine->kept_memory_bytes(), engine->product_memory_bytes(large));
        engine->product(small, {.memory_limit_bytes = engine->product_memory_bytes(small)});
        QCOMPARE(engine->kept_memory_bytes(), engine->product_memory_bytes(small));
    }

    void the_cpu_engines_own_memory_is_bounded_whatever_the_shape() {
        const auto engine = make_cpu_engine({.threads = 4});
        for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8})
            for (const int64_t m : {1, 5000, 1 << 20})
                for (const int64_t k : {0, 1, 4096, 1 << 20})
                    for (const int64_t n : {1, 5000, 1 << 20}) {
                        const ProductOperands operands{.dtype = dtype, .rows = m, .depth = k, .columns = n};
                        const uint64_t bytes = engine->product_memory_bytes(operands);
                        QVERIFY(bytes > 0 && bytes <= (uint64_t{64} << 20) + 4 * (uint64_t{256} << 10));
                    }
    }

    void a_stop_is_obeyed_within_100_ms_data() { each_engine(); }
    void a_stop_is_obeyed_within_100_ms() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const auto inputs = tensors(ones(4096, 8192), ones(8192, 2048));
        for (int attempt = 0; attempt < 3; ++attempt) {
            const int64_t took_ms = milliseconds_to_stop(*engine, inputs);
            QVERIFY2(took_ms <= 100, qPrintable(QString::number(took_ms)));
        }
    }

    void an_engine_goes_on_after_a_stop() {
        const auto engine = make_cpu_engine({.threads = 2});
        std::stop_source stop;
        stop.request_stop();
        const auto inputs = tensors(ones(30, 40), ones(40, 50));
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        QCOMPARE(kind_of_error_of([&] { engine->run(graph, inputs, {.stop = stop.get_token()}); }),
                 ErrorKind::cancelled);
        QCOMPARE(engine->run(graph, inputs, {})[0].as<float>()[1499], 40.0f);
    }

    void a_caller_that_waits_for_another_can_be_stopped() {
        const auto engine = make_cpu_engine({.threads = 1});
        const auto inputs = tensors(ones(4096, 8192), ones(8192, 2048));
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        std::atomic<uint64_t> done_flops{0};
        std::stop_source first, second;
        ErrorKind first_ended = ErrorKind::usage;
        std::thread running([&] {
            first_ended = kind_of_error_of(
                [&] { engine->run(graph, inputs, {.stop = first.get_token(), .done_flops = &done_flops}); });
        });
        while (done_flops == 0) std::this_thread::yield();
        std::thread stopper([&] { second.request_stop(); });
        QCOMPARE(kind_of_error_of([&] { engine->run(graph, inputs, {.stop = second.get_token()}); }),
                 ErrorKind::cancelled);
        first.request_stop();
        running.join();
        stopper.join();
        QCOMPARE(first_ended, ErrorKind::cancelled);
    }

    void progress_ends_at_the_cost_of_the_graph_data() { each_engine(); }
    void progress_ends_at_the_cost_of_the_graph() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        const auto inputs = tensors(ones(13, 4099), ones(4099, 17));
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        std::atomic<uint64_t> done_flops{0};
        engine->run(graph, inputs, {.done_flops = &done_flops});
        QCOMPARE(done_flops.load(), cost_of(graph).flops);
    }

    void a_callers_float_settings_change_nothing_and_stay_data() { each_engine(); }
    void a_callers_float_settings_change_nothing_and_stay() {
        QFETCH(QString, name);
        const auto engine = engine_called(name);
        std::vector<Tensor> inputs = tensors(ones(20, 30), ones(30, 40));
        for (float& value : inputs[0].as<float>()) value = 0.1f;
        const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
        const auto expected = engine->run(graph, inputs, {});
        std::fesetround(FE_UPWARD);
        const auto found = engine->run(graph, inputs, {});
        const int rounding = std::fegetround();
        std::fesetround(FE_TONEAREST);
        QCOMPARE(rounding, FE_UPWARD);
        QVERIFY(found[0].same_bits(expected[0]));
    }

    void a_processor_without_fma_is_told_so() {
        for (const std::string& target : cpu_vector_targets()) {
            const auto engine = make_cpu_engine({.threads = 1, .vector_target = target});
            QVERIFY(!engine->why_no_product(DType::i32));
            const auto reason = engine->why_no_product(DType::f32);
            if (!reason) continue;
            QVERIFY(QString::fromStdString(*reason).contains("no fused multiply-add"));
            const auto inputs = tensors(ones(1, 1), ones(1, 1));
            const Graph graph = product_graph(inputs[0].spec(), inputs[1].spec());
            QCOMPARE(engine->why_not(graph), reason);
            QCOMPARE(kind_of_error_of([&] { engine->run(graph, inputs, {}); }), ErrorKind::numeric);
        }
        // On the processors we know, the lowest target has no fma: the loop above has seen it.
        const auto lowest = make_cpu_engine({.threads = 1, .vector_target = cpu_vector_targets().back()});
#if defined(__x86_64__)
        QVERIFY(lowest->why_no_product(DType::f32));
#endif
    }

    void settings_that_make_no_sense_are_refused() {
        VERIFY_REFUSED(make_cpu_engine({.threads = 5000}), "expected 1 to 1024 threads, found 5000");
        VERIFY_REFUSED(make_cpu_engine({.vector_target = "MMX"}), "vector targets");
    }

    void unsound_operands_are_refused() {
        const auto engine = make_cpu_engine({.threads = 1});
        float memory[4] = {};
        const ProductOperands sound{.rows = 2,
                                    .depth = 2,
                                    .columns = 2,
                                    .a = memory,
                                    .a_stride = 2,
                                    .b = memory,
                                    .b_stride = 2,
                                    .c = memory,
                                    .c_stride = 2};
        ProductOperands operands = sound;
        operands.rows = -1;
        VERIFY_REFUSED(engine->product(operands, {}), "lengths from 0 to 2^40, found [-1, 2]");
        operands = sound;
        operands.b_stride = 1;
        VERIFY_REFUSED(engine->product(operands, {}),
                       "a row stride of at least 2 for the right operand, found 1");
        operands = sound;
        operands.c = nullptr;
        VERIFY_REFUSED(engine->product(operands, {}), "expected memory for the result [2, 2], found none");
        operands = sound;
        operands.dtype = DType::boolean;
        VERIFY_REFUSED(engine->product(operands, {}), "found bool");
    }
};

QTEST_APPLESS_MAIN(TestEngines)
#include "test_engines.moc"
