// A lab of a test's own: `goblin-lab init` and `serve` as real processes on 127.0.0.1, in a temporary folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/work/digest.hpp"
#include "core/work/link.hpp"
#include "labcli/admin/admin_messages.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/https_client.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::test {

class LabProcess {
  public:
    struct Settings {
        std::vector<std::string> init_options;
        std::vector<std::string> serve_options;
        std::vector<std::string> environment;  // of `serve`, "NAME=VALUE"
        std::string address = "127.0.0.1";
        std::filesystem::path directory;  // empty: in the temporary folder
    };

    // Makes the lab and serves it; answers when it returns. Throws ErrorKind::failed with the lab's log.
    LabProcess();
    explicit LabProcess(Settings settings);

    // Serves again after an end, at the same port.
    void start();
    // SIGTERM; waits for the end. The exit code.
    int stop();
    // SIGKILL at this very moment; waits until it is gone.
    void kill();
    bool running() { return serve_ && serve_->running(); }
    pid_t pid() const { return serve_->pid(); }

    const std::filesystem::path& directory() const { return directory_; }
    // A folder for the test's own files; it goes with the lab.
    const std::filesystem::path& files() const { return files_; }
    uint16_t port() const { return port_; }
    const Digest& key() const { return key_; }
    // The way for a client of the HTTPS service.
    HttpsClient::Settings client_settings() const;
    // Everything that `serve` wrote to standard error, over all its starts.
    std::string log() const;

    // A verb of the administration; see labcli/node/admin_verbs.cpp for their names. Throws what the lab
    // answers.
    lab::Json ask(const std::string& verb, const lab::Json& arguments) const;
    lab::Json ask(const std::string& verb) const;
    // The same command line as a person would type, with --dir and --json.
    Finished command(std::vector<std::string> arguments) const;

    // Throws ErrorKind::failed when fewer computers have made themselves heard in time.
    void wait_for_contributors(size_t count, int patience_ms = 180'000) const;
    // A link for `uses` computers.
    std::string invite(uint64_t uses = 1) const;
    // The same that leads to another place, as a proxy's.
    std::string invite_through(const HostPort& place, uint64_t uses = 1) const;
    // Submits A·B; its number. `options`: members beside kind and arguments (verify, replicas …); tile as in
    // --tile.
    uint64_t submit_product(const std::filesystem::path& a, const std::filesystem::path& b,
                            const std::filesystem::path& output, const lab::Json& options,
                            const std::string& tile = "") const;
    lab::Json job(uint64_t id) const;
    // Whether it is done, failed or stopped.
    bool is_over(uint64_t id) const;
    // The status of a job that is over. Throws ErrorKind::failed, with its history, when it isn't in time.
    lab::Json wait_for_job(uint64_t id, int patience_ms = 60'000) const;
    // The lines of a job's history, one per line.
    std::string history(uint64_t id) const;

  private:
    Settings settings_;
    TemporaryFolder folder_;
    std::filesystem::path directory_;
    std::filesystem::path files_;
    Digest key_;
    uint16_t port_ = 0;
    std::unique_ptr<ChildProcess> serve_;
};

}  // namespace goblin::test
