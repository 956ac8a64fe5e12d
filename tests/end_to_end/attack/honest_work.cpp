// Submits products, waits for them, looks at their bits.
#include "tests/end_to_end/attack/honest_work.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

void HonestWork::begin() {
    for (const char* name : {"alice", "bob"})
        workers_.push_back(std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_.invite(), WorkerProcess::modest_options(name), {}, {}}));
    lab_.wait_for_contributors(workers_.size());
    files_ = std::make_unique<ProductFiles>(lab_.files(), "honest", random_matrix(DType::f32, 40, 30, 1),
                                            random_matrix(DType::f32, 30, 40, 2));
    ending_ = false;
    thread_ = std::thread([this] { compute_until_told(); });
}

void HonestWork::end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    workers_.clear();
}

void HonestWork::compute_until_told() {
    while (!ending_) {
        const std::string trouble = compute_one();
        if (trouble.empty()) {
            ++products_;
            continue;
        }
        const std::lock_guard lock(mutex_);
        trouble_ = trouble;
        return;
    }
}

std::string HonestWork::compute_one() {
    try {
        std::filesystem::remove(files_->output());
        const uint64_t id =
            lab_.submit_product(files_->a(), files_->b(), files_->output(), {{"verify", "redundant"}}, "8x8");
        const lab::Json status = lab_.wait_for_job(id, 120'000);
        if (status["state"] != "done") return status.dump() + lab_.history(id);
        return files_->wrong_output();
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string HonestWork::goes_on(uint64_t count, int patience_ms) {
    const uint64_t before = products_;
    std::string trouble;
    const auto over = [&] {
        const std::lock_guard lock(mutex_);
        trouble = trouble_;
        return !trouble.empty() || products_ >= before + count;
    };
    if (!wait_until(over, patience_ms) && trouble.empty())
        trouble = "no product was finished in time: " + lab_.ask("job.list").dump() + lab_.log();
    return trouble;
}

}  // namespace goblin::test
