// A real contributor: `goblin-worker` as a process with a folder of its own, so that it is a volunteer of its
// own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::test {

class WorkerProcess {
  public:
    struct Settings {
        std::string link;                  // to join with; empty: go on with the labs joined before
        std::vector<std::string> options;  // beside --dir and --join
        std::vector<std::string> environment;
        std::filesystem::path directory;         // empty: a temporary one
        std::vector<std::string> launcher = {};  // a command line that ends by becoming the one after it
    };

    // Starts it and returns at once.
    explicit WorkerProcess(Settings settings);
    // One thread, 512 MiB: what a test on a shared machine should take.
    static std::vector<std::string> modest_options(const std::string& name);

    // Starts it again after an end, on the same directory, without the link.
    void start();
    // SIGTERM; waits for the end. The exit code.
    int stop();
    void kill() { process_->kill(); }
    void signal(int number) { process_->signal(number); }
    bool running() { return process_->running(); }
    pid_t pid() const { return process_->pid(); }
    ChildProcess& process() { return *process_; }

    const std::filesystem::path& directory() const { return directory_; }
    // What it logged over all its starts.
    std::string log() const;

  private:
    void start(const std::string& link);

    Settings settings_;
    TemporaryFolder folder_;
    std::filesystem::path directory_;
    std::unique_ptr<ChildProcess> process_;
};

}  // namespace goblin::test
