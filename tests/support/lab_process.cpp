// Makes, serves, asks and ends a lab.
#include "tests/support/lab_process.hpp"

#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/link.hpp"
#include "labcli/admin/admin_client.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

using lab::Json;

constexpr int start_patience_ms = 60'000;
constexpr int stop_patience_ms = 30'000;

bool is_end(const Json& status) {
    return status["state"] == "done" || status["state"] == "failed" || status["state"] == "stopped";
}

}  // namespace

LabProcess::LabProcess() : LabProcess(Settings()) {}

LabProcess::LabProcess(Settings settings)
    : settings_(std::move(settings)),
      directory_(settings_.directory.empty() ? folder_ / "lab" : settings_.directory),
      files_(folder_ / "files") {
    std::filesystem::create_directory(files_);
    std::vector<std::string> arguments = {"init"};
    arguments.insert(arguments.end(), settings_.init_options.begin(), settings_.init_options.end());
    const Finished made = command(std::move(arguments));
    if (made.exit_code != 0)
        throw Error(ErrorKind::failed, "expected goblin-lab init to make a lab, found: {}", made.errors);
    start();
}

void LabProcess::start() {
    std::vector<std::string> arguments = {"--dir",    directory_.string(),
                                          "--json",   "serve",
                                          "--listen", HostPort{settings_.address, port_}.text()};
    arguments.insert(arguments.end(), settings_.serve_options.begin(), settings_.serve_options.end());
    serve_ = std::make_unique<ChildProcess>(
        ChildProcess::Settings{program("goblin-lab"), std::move(arguments), settings_.environment,
                               folder_ / "serve.out", folder_ / "serve.err"});
    const bool answers =
        wait_until([&] { return serve_->output().ends_with('\n') || !serve_->running(); }, start_patience_ms);
    const Json said = Json::parse(serve_->output(), nullptr, false);
    if (!answers || !said.is_object() || !said.contains("port"))
        throw Error(ErrorKind::failed, "expected goblin-lab serve to say where it listens, found '{}': {}",
                    serve_->output(), serve_->errors());
    port_ = said["port"].get<uint16_t>();
    key_ = InvitationLink::parse(invite()).lab_key;
}

int LabProcess::stop() {
    serve_->signal(SIGTERM);
    const std::optional<int> code = serve_->wait(stop_patience_ms);
    if (!code)
        throw Error(ErrorKind::failed, "expected goblin-lab serve to stop on SIGTERM, found it running: {}",
                    serve_->errors());
    return *code;
}

void LabProcess::kill() {
    serve_->kill();
}

HttpsClient::Settings LabProcess::client_settings() const {
    HttpsClient::Settings client;
    client.address = settings_.address;
    client.port = port_;
    client.lab_key = key_;
    return client;
}

std::string LabProcess::log() const {
    return text_of_file(folder_ / "serve.err");
}

Json LabProcess::ask(const std::string& verb, const Json& arguments) const {
    lab::AdminClient client(directory_ / "admin.sock");
    return client.call(verb, arguments);
}

Json LabProcess::ask(const std::string& verb) const {
    return ask(verb, Json::object());
}

Finished LabProcess::command(std::vector<std::string> arguments) const {
    std::vector<std::string> all = {"--dir", directory_.string(), "--json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(program("goblin-lab"), std::move(all));
}

void LabProcess::wait_for_contributors(size_t count, int patience_ms) const {
    size_t seen = 0;
    const auto enough = [&] {
        seen = 0;
        for (const Json& node : ask("node.list")) seen += node["seen_s"].is_number();
        return seen >= count;
    };
    if (!wait_until(enough, patience_ms, 50))
        throw Error(ErrorKind::failed, "expected {} contributors within {} ms, found {}: {}", count,
                    patience_ms, seen, log());
}

std::string LabProcess::invite(uint64_t uses) const {
    return invite_through({settings_.address, port_}, uses);
}

std::string LabProcess::invite_through(const HostPort& place, uint64_t uses) const {
    return ask("invite.create", {{"host", place.text()}, {"uses", uses}})["link"].get<std::string>();
}

uint64_t LabProcess::submit_product(const std::filesystem::path& a, const std::filesystem::path& b,
                                    const std::filesystem::path& output, const Json& options,
                                    const std::string& tile) const {
    Json call = options;
    call["kind"] = "product";
    call["arguments"] = {{"a", a.string()}, {"b", b.string()}, {"output", output.string()}, {"tile", tile}};
    return ask("job.submit", call)["id"].get<uint64_t>();
}

Json LabProcess::job(uint64_t id) const {
    return ask("job.status", {{"id", id}});
}

bool LabProcess::is_over(uint64_t id) const {
    return is_end(job(id));
}

Json LabProcess::wait_for_job(uint64_t id, int patience_ms) const {
    Json status;
    const auto over = [&] {
        status = job(id);
        return is_end(status);
    };
    if (!wait_until(over, patience_ms, 50))
        throw Error(ErrorKind::failed, "expected job {} to end within {} ms, found {}\n{}", id, patience_ms,
                    status.dump(), history(id));
    return status;
}

std::string LabProcess::history(uint64_t id) const {
    std::string text;
    for (const Json& line : ask("job.logs", {{"id", id}})) text += line["text"].get<std::string>() + "\n";
    return text;
}

}  // namespace goblin::test
