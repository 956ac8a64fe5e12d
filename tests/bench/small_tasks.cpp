// How many small verified tasks a second the lab node gets through.
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "core/tensor/npy_writer.hpp"
#include "tests/bench/measure.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/small_task_volunteer.hpp"

namespace goblin::bench {

namespace {

constexpr uint64_t volunteers = 32;
constexpr uint64_t results_per_exchange = 64;
constexpr int64_t tasks = 100'000;
constexpr int64_t numbers = 16;  // in and out of each task

void write_matrix(const std::filesystem::path& path, const Shape& shape, const std::vector<float>& values) {
    NpyWriter writer = NpyWriter::create(path, "new", {DType::f32, shape});
    writer.write_block({0, 0, shape[0], shape[1]}, std::as_bytes(std::span(values)));
    writer.finish();
}

}  // namespace

Measurement small_tasks() {
    test::LabProcess lab;
    std::vector<float> values(static_cast<size_t>(tasks * numbers));
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(generator);
    write_matrix(lab.files() / "a.npy", Shape{tasks * numbers, 1}, values);
    write_matrix(lab.files() / "b.npy", Shape{1, 1}, {1.5F});
    test::SmallTaskSwarm swarm(InvitationLink::parse(lab.invite(volunteers)), volunteers,
                               results_per_exchange);
    while (lab.ask("node.list").size() < volunteers)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    const uint64_t id =
        lab.submit_product(lab.files() / "a.npy", lab.files() / "b.npy", lab.files() / "c.npy",
                           {{"verify", "redundant"}, {"replicas", 2}}, fmt::format("{}x1", numbers));
    const auto status = lab.wait_for_job(id, 300'000);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    swarm.stop();
    if (status["state"] != "done")
        throw Error(ErrorKind::failed, "the job failed: {}", status["reason"].get<std::string>());
    const double per_s = static_cast<double>(tasks) / seconds;
    return {per_s,
            "tasks/s",
            {},
            {},
            {},
            "16 f32 in and out, two replicas each, 64 results an exchange, 32 volunteers over TLS, each "
            "acknowledgement on disk"};
}

}  // namespace goblin::bench
