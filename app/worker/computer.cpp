// Finds and measures devices.
#include "app/worker/computer.hpp"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <chrono>
#include <fstream>

#include "app/worker/plain_text.hpp"
#include "app/worker/quantity.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "core/error.hpp"

namespace goblin::worker {

namespace {

constexpr int64_t measured_size = 768;
constexpr int measured_runs = 3;

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
        found.offer.takes_floats = !engine->why_no_product(DType::f32);
        if (!found.offer.takes_floats) found.why_not = *engine->why_no_product(DType::f32);
        found.offer.speed_flops = measure_speed(*engine, found.offer.takes_floats ? DType::f32 : DType::i32);
        found.engine = std::move(engine);
    } catch (const Error& error) {
        found.why_not = error.what();
    }
    return found;
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
        if (!device.why_not.empty())
            text += fmt::format("  {}: {}\n", device.engine ? "limited" : "can't be used", device.why_not);
    }
    return text;
}

std::string devices_json(const std::vector<FoundDevice>& devices) {
    QJsonArray list;
    for (const FoundDevice& device : devices) {
        QJsonObject object;
        object["kind"] = QString::fromStdString(device.offer.kind);
        object["name"] = QString::fromStdString(device.offer.name);
        object["usable"] = device.engine != nullptr;
        object["takes_floats"] = device.offer.takes_floats;
        object["threads"] = static_cast<int>(device.threads);
        object["vector_target"] = QString::fromStdString(device.vector_target);
        object["speed_flops"] = static_cast<double>(device.offer.speed_flops);
        object["memory_bytes"] = static_cast<double>(device.offer.memory_bytes);
        object["why_not"] =
            device.why_not.empty() ? QJsonValue() : QJsonValue(QString::fromStdString(device.why_not));
        list.append(object);
    }
    return QJsonDocument(QJsonObject{{"devices", list}}).toJson(QJsonDocument::Compact).toStdString() + "\n";
}

}  // namespace goblin::worker
