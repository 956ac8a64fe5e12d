// Starts and ends goblin-worker.
#include "tests/support/worker_process.hpp"

#include <signal.h>

#include "core/error.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

constexpr int stop_patience_ms = 60'000;

// Whether the process has a handler for the signal: a program that has just begun would end by it at once.
bool catches(pid_t pid, int number) {
    const std::string status = text_of_file(fmt::format("/proc/{}/status", pid));
    const size_t line = status.find("SigCgt:");
    if (line == std::string::npos) return false;
    const unsigned long long caught = std::stoull(status.substr(line + 7), nullptr, 16);
    return (caught >> (number - 1) & 1) != 0;
}

}  // namespace

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
    // With a launcher the number is that one's, until it has become the worker.
    if (settings_.launcher.empty())
        wait_until([&] { return !process_->running() || catches(process_->pid(), SIGTERM); });
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
