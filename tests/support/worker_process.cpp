// Starts and ends goblin-worker.
#include "tests/support/worker_process.hpp"

#include <signal.h>

#include "core/error.hpp"

namespace goblin::test {

namespace {
constexpr int stop_patience_ms = 60'000;
}

WorkerProcess::WorkerProcess(Settings settings)
    : settings_(std::move(settings)),
      directory_(settings_.directory.empty() ? folder_ / "worker" : settings_.directory) {
    start(settings_.link);
}

std::vector<std::string> WorkerProcess::modest_options(const std::string& name) {
    return {"--name", name, "--cpu-threads", "1", "--memory", "512MiB", "--disk", "256MiB", "--no-gpu"};
}

void WorkerProcess::start() {
    start({});
}

void WorkerProcess::start(const std::string& link) {
    std::vector<std::string> arguments = settings_.launcher;
    arguments.insert(arguments.end(), {program("goblin-worker").string(), "--dir", directory_.string()});
    if (!link.empty()) arguments.insert(arguments.end(), {"--join", link});
    arguments.insert(arguments.end(), settings_.options.begin(), settings_.options.end());
    const std::string first = arguments.front();
    arguments.erase(arguments.begin());
    process_ = std::make_unique<ChildProcess>(ChildProcess::Settings{
        first, std::move(arguments), settings_.environment, folder_ / "worker.out", folder_ / "worker.err"});
}

int WorkerProcess::stop() {
    process_->signal(SIGTERM);
    const std::optional<int> code = process_->wait(stop_patience_ms);
    if (!code)
        throw Error(ErrorKind::failed, "expected goblin-worker to stop on SIGTERM, found it running: {}",
                    process_->errors());
    return *code;
}

std::string WorkerProcess::log() const {
    return text_of_file(folder_ / "worker.err");
}

}  // namespace goblin::test
