// A program that a test runs: its output kept in files, ended by its own number, never left behind.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace goblin::test {

// Where the build put its programs: $GOBLIN_BIN, else beside the program that asks.
std::filesystem::path program(const std::string& name);

class ChildProcess {
  public:
    struct Settings {
        std::filesystem::path program;
        std::vector<std::string> arguments;
        std::vector<std::string> environment;  // "NAME=VALUE", besides what the test itself has
        std::filesystem::path output;          // a file, appended to; standard output goes here
        std::filesystem::path errors;          // the same for standard error
    };

    // Starts it. The system kills it when the thread that started it ends. Throws ErrorKind::io.
    explicit ChildProcess(Settings settings);
    // Kills it if it still runs.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    pid_t pid() const { return pid_; }
    bool running();
    void signal(int number);
    // The exit code, 128 + the signal that ended it; nothing when it still runs after `patience_ms`.
    std::optional<int> wait(int patience_ms);
    // SIGKILL, and waits until it is gone.
    void kill();

    // What it printed so far, since it was started.
    std::string output() const;
    std::string errors() const;

  private:
    Settings settings_;
    size_t output_start_ = 0;
    size_t errors_start_ = 0;
    pid_t pid_ = -1;
    std::optional<int> exit_code_;
};

struct Finished {
    int exit_code = -1;
    std::string output;
    std::string errors;
};
// Runs a program to its end; kills it after `patience_ms`, which throws ErrorKind::failed.
Finished run_program(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::vector<std::string> environment = {}, int patience_ms = 60'000);

std::string text_of_file(const std::filesystem::path& file);

}  // namespace goblin::test
