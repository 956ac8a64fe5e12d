// Finds and measures devices.
#include "app/worker/computer.hpp"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/engine/cpu/cpu_engine.hpp"
#include "core/engine/self_test.hpp"
#include "core/error.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {

constexpr int64_t measured_size = 768;
constexpr int measured_runs = 3;
constexpr DType integers[] = {DType::i32, DType::i64, DType::i8, DType::u8};

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos)
            return plain_text(line.substr(colon + 2), limits::text_bytes / 2);
    }
    return "processor";
}

// Operations a second of a square product, the best of a few.
uint64_t measure_speed(Engine& engine, DType dtype) {
    const TensorSpec spec{dtype, Shape{measured_size, measured_size}};
    const Graph graph = product_graph(spec, spec);
    std::vector<Tensor> inputs;
    inputs.emplace_back(spec);
    inputs.emplace_back(spec);
    const double flops = static_cast<double>(cost_of(graph).flops);
    double best = 0;
    for (int run = 0; run < measured_runs; ++run) {
        const auto start = std::chrono::steady_clock::now();
        engine.run(graph, inputs, {});
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best = std::max(best, flops / took.count());
    }
    return static_cast<uint64_t>(best);
}

FoundDevice find_processor(const ComputerSettings& settings) {
    FoundDevice found;
    found.offer.kind = "cpu";
    found.offer.name = processor_name();
    found.offer.memory_bytes = settings.memory_bytes;
    found.threads = settings.cpu_threads;
    try {
        auto engine = make_cpu_engine({.threads = settings.cpu_threads, .vector_target = {}});
        found.vector_target = engine->vector_target();
        const SelfTestReport report = self_test(*engine);
        found.lacking = report.lacking;
        found.offer.takes_floats =
            report.takes_products_of(DType::f32) && report.takes_products_of(DType::f64);
        const bool counts_right = std::all_of(std::begin(integers), std::end(integers),
                                              [&](DType dtype) { return report.takes_products_of(dtype); });
        if (!counts_right) return found;
        found.offer.speed_flops = measure_speed(*engine, found.offer.takes_floats ? DType::f32 : DType::i32);
        found.engine = std::move(engine);
    } catch (const Error& error) {
        found.lacking.push_back(error.what());
    }
    return found;
}

QJsonArray lines_json(const std::vector<std::string>& lines) {
    QJsonArray list;
    for (const std::string& line : lines) list.append(QString::fromStdString(line));
    return list;
}

std::string json_text(const QJsonArray& devices) {
    return QJsonDocument(QJsonObject{{"devices", devices}}).toJson(QJsonDocument::Compact).toStdString() +
           "\n";
}

QJsonObject named(const FoundDevice& device) {
    return {{"kind", QString::fromStdString(device.offer.kind)},
            {"name", QString::fromStdString(device.offer.name)}};
}

}  // namespace

std::vector<FoundDevice> find_devices(const ComputerSettings& settings) {
    std::vector<FoundDevice> devices;
    devices.push_back(find_processor(settings));
    return devices;
}

std::string devices_text(const std::vector<FoundDevice>& devices) {
    std::string text;
    for (const FoundDevice& device : devices) {
        text += fmt::format("{}: {}\n", device.offer.kind, device.offer.name);
        if (device.engine)
            text += fmt::format(
                "  {} threads, vector unit {}, {:.4g} billion operations a second, {} of memory for tasks\n",
                device.threads, device.vector_target, static_cast<double>(device.offer.speed_flops) / 1e9,
                size_text(device.offer.memory_bytes));
        if (device.engine && !device.offer.takes_floats) text += "  takes tasks of integers only\n";
        if (!device.engine) text += "  can't be used\n";
        for (const std::string& line : device.lacking) text += fmt::format("  {}\n", line);
    }
    return text;
}

std::string devices_json(const std::vector<FoundDevice>& devices) {
    QJsonArray list;
    for (const FoundDevice& device : devices) {
        QJsonObject object = named(device);
        object["usable"] = device.engine != nullptr;
        object["takes_floats"] = device.offer.takes_floats;
        object["threads"] = static_cast<int>(device.threads);
        object["vector_target"] = QString::fromStdString(device.vector_target);
        object["speed_flops"] = static_cast<double>(device.offer.speed_flops);
        object["memory_bytes"] = static_cast<double>(device.offer.memory_bytes);
        object["lacking"] = lines_json(device.lacking);
        list.append(object);
    }
    return json_text(list);
}

bool all_right(const std::vector<FoundDevice>& devices) {
    return std::all_of(devices.begin(), devices.end(),
                       [](const FoundDevice& device) { return device.lacking.empty(); });
}

std::string self_test_text(const std::vector<FoundDevice>& devices) {
    std::string text;
    for (const FoundDevice& device : devices) {
        text += fmt::format("{}: {}: {}\n", device.offer.kind, device.offer.name,
                            device.lacking.empty() ? "gives all known answers" : "gives wrong answers");
        for (const std::string& line : device.lacking) text += fmt::format("  {}\n", line);
    }
    return text;
}

std::string self_test_json(const std::vector<FoundDevice>& devices) {
    QJsonArray list;
    for (const FoundDevice& device : devices) {
        QJsonObject object = named(device);
        object["passed"] = device.lacking.empty();
        object["lacking"] = lines_json(device.lacking);
        list.append(object);
    }
    return json_text(list);
}

}  // namespace goblin::worker
