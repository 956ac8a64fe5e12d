// Starts, watches and ends programs.
#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/wait_until.hpp"

extern char** environ;

namespace goblin::test {

namespace {

size_t size_of_file(const std::filesystem::path& file) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(file, missing);
    return missing ? 0 : size;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

std::filesystem::path program(const std::string& name) {
    const char* const folder = std::getenv("GOBLIN_BIN");
    if (folder != nullptr && *folder != '\0') return std::filesystem::path(folder) / name;
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::string text_of_file(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

ChildProcess::ChildProcess(Settings settings)
    : settings_(std::move(settings)),
      output_start_(size_of_file(settings_.output)),
      errors_start_(size_of_file(settings_.errors)) {
    // Everything that takes memory happens before the fork: the child of a program with threads may not.
    std::vector<std::string> arguments = {settings_.program.string()};
    arguments.insert(arguments.end(), settings_.arguments.begin(), settings_.arguments.end());
    std::vector<std::string> environment = settings_.environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    const std::vector<char*> argument_pointers = pointers_to(arguments);
    const std::vector<char*> environment_pointers = pointers_to(environment);
    const pid_t parent = getpid();
    const int output = open(settings_.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int errors = open(settings_.errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (output < 0 || errors < 0)
        throw Error(ErrorKind::io, "expected to keep a program's output, found: {}", strerror(errno));
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        dup2(output, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
        _exit(127);
    }
    const int reason = errno;
    close(output);
    close(errors);
    if (pid_ < 0)
        throw Error(ErrorKind::io, "expected to start {}, found: {}", settings_.program.string(),
                    strerror(reason));
}

ChildProcess::~ChildProcess() {
    kill();
}

bool ChildProcess::running() {
    return !wait(0);
}

void ChildProcess::signal(int number) {
    if (running()) ::kill(pid_, number);
}

std::optional<int> ChildProcess::wait(int patience_ms) {
    const auto ended = [&] {
        if (exit_code_) return true;
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
        exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return true;
    };
    wait_until(ended, patience_ms);
    return exit_code_;
}

void ChildProcess::kill() {
    if (!running()) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_code_ = 128 + SIGKILL;
}

std::string ChildProcess::output() const {
    return text_of_file(settings_.output).substr(output_start_);
}

std::string ChildProcess::errors() const {
    return text_of_file(settings_.errors).substr(errors_start_);
}

Finished run_program(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::vector<std::string> environment, int patience_ms) {
    const TemporaryFolder folder;
    ChildProcess child(
        {program, std::move(arguments), std::move(environment), folder / "out", folder / "err"});
    const std::optional<int> code = child.wait(patience_ms);
    if (!code)
        throw Error(ErrorKind::failed, "expected {} to end within {} ms, found it running: {}",
                    program.string(), patience_ms, child.errors());
    return {*code, child.output(), child.errors()};
}

}  // namespace goblin::test
