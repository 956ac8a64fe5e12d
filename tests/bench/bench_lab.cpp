// Runs jobs on a lab of the bench's own and takes their time.
#include "tests/bench/bench_lab.hpp"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/arithmetic/product.hpp"
#include "core/error.hpp"
#include "core/tensor/npy_reader.hpp"
#include "core/tensor/npy_writer.hpp"

namespace goblin::bench {

namespace {

using namespace std::chrono_literals;

constexpr int job_patience_ms = 900'000;
constexpr uint64_t random_bytes = uint64_t{64} << 20;

}  // namespace

BenchLab::BenchLab(std::vector<std::vector<std::string>> worker_options) {
    for (std::vector<std::string>& options : worker_options)
        workers_.push_back(std::make_unique<test::WorkerProcess>(
            test::WorkerProcess::Settings{lab_.invite(), std::move(options), {}, {}}));
    const auto a = matrix("warm-up", 1024, 1024);
    const auto connected = [&] {
        size_t count = 0;
        for (const auto& node : lab_.ask("node.list")) count += node["seen_s"].is_number();
        return count == workers_.size();
    };
    for (int i = 0; i < 300 && !connected(); ++i) std::this_thread::sleep_for(100ms);
    const auto welcomed = [&] {
        for (const auto& node : lab_.ask("node.list"))
            if (node["agreed"].get<uint64_t>() < 4) return false;
        return true;
    };
    for (int i = 0; i < 20 && !welcomed(); ++i)
        product_s(a, a, workers_.size() > 1 ? "redundant" : "product");
    if (!welcomed())
        throw Error(ErrorKind::failed,
                    "expected every contributor to take part in the warm-up, found one idle");
}

std::filesystem::path BenchLab::matrix(const std::string& name, int64_t rows, int64_t cols) {
    const std::filesystem::path path = lab_.files() / (name + ".npy");
    NpyWriter writer = NpyWriter::create(path, "new", {DType::f32, Shape{rows, cols}}, Existing::replace);
    const int64_t rows_at_once = std::max<int64_t>(1, static_cast<int64_t>(random_bytes / 4) / cols);
    std::vector<float> block(static_cast<size_t>(std::min(rows, rows_at_once) * cols));
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& value : block) value = normal(generator);
    for (int64_t row = 0; row < rows; row += rows_at_once) {
        const int64_t count = std::min(rows_at_once, rows - row);
        writer.write_block({row, 0, count, cols},
                           std::as_bytes(std::span(block)).first(static_cast<size_t>(count * cols) * 4));
    }
    writer.finish();
    return path;
}

double BenchLab::product_s(const std::filesystem::path& a, const std::filesystem::path& b,
                           const std::string& policy) {
    output_ = lab_.files() / "product.npy";
    std::filesystem::remove(output_);
    const auto start = std::chrono::steady_clock::now();
    const uint64_t id = lab_.submit_product(a, b, output_, {{"verify", policy}});
    const auto status = lab_.wait_for_job(id, job_patience_ms);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (status["state"] != "done")
        throw Error(ErrorKind::failed, "the job failed: {}", status["reason"].get<std::string>());
    return seconds;
}

void BenchLab::expect_exact(const std::filesystem::path& a, const std::filesystem::path& b, int samples) {
    const NpyReader left(a), right(b), product(output_);
    const int64_t depth = left.cols();
    std::vector<float> row(static_cast<size_t>(depth)), column(static_cast<size_t>(depth));
    std::mt19937_64 generator(2);
    for (int i = 0; i < samples; ++i) {
        const auto r = static_cast<int64_t>(generator() % static_cast<uint64_t>(product.rows()));
        const auto c = static_cast<int64_t>(generator() % static_cast<uint64_t>(product.cols()));
        left.read_block({r, 0, 1, depth}, std::as_writable_bytes(std::span(row)));
        right.read_block({0, c, depth, 1}, std::as_writable_bytes(std::span(column)));
        float found = 0;
        product.read_block({r, c, 1, 1}, std::as_writable_bytes(std::span(&found, 1)));
        const float expected = product_element<float>({row.data(), 1}, {column.data(), 1}, depth);
        if (std::bit_cast<uint32_t>(found) != std::bit_cast<uint32_t>(expected))
            throw Error(ErrorKind::failed, "element [{}, {}]: expected {}, found {}", r, c, expected, found);
    }
}

uint64_t BenchLab::lab_peak_bytes() const {
    std::ifstream status(fmt::format("/proc/{}/status", lab_.pid()));
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
    throw Error(ErrorKind::io, "expected VmHWM in /proc, found none");
}

}  // namespace goblin::bench
