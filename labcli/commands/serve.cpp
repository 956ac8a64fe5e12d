// goblin-lab serve: runs the lab node until it is told to stop.
#include <semaphore.h>
#include <csignal>

#include <atomic>
#include <mutex>

#include "core/work/plain_text.hpp"
#include "labcli/admin/admin_server.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"
#include "labcli/node/admin_verbs.hpp"
#include "labcli/service/https_service.hpp"
#include "labcli/threads/work_pool.hpp"

namespace goblin::lab {

namespace {

sem_t stop_requested;
std::atomic<bool> failed{false};

void request_stop(int) {
    sem_post(&stop_requested);
}

// Unlike a contributor's way to the lab, an address to listen at may be * and its port 0.
HostPort parse_listen(const std::string& text) {
    const bool any_port = text.ends_with(":0");
    const std::string rest = any_port ? text.substr(0, text.size() - 2) : text;
    if (!rest.starts_with('*')) return HostPort::parse(rest, any_port ? 0 : default_port);
    HostPort place = HostPort::parse("any" + rest.substr(1), any_port ? 0 : default_port);
    place.host = "*";
    return place;
}

// Commands in the hands of people and scripts, those that were interrupted included.
constexpr size_t most_commands_waiting = 256;

constexpr std::string_view level_names[] = {"debug", "info", "warning", "error"};

// "2026-01-31 12:00:00.000 info    text" on standard error.
class Log {
  public:
    explicit Log(LogLevel lowest) : lowest_(lowest) {}
    void operator()(LogLevel level, std::string_view text) {
        if (level < lowest_) return;
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const std::string line = fmt::format(
            "{} {:7} {}\n",
            time_text(
                static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count())),
            level_names[static_cast<size_t>(level)], plain_text(text, longest_line_bytes));
        const std::lock_guard lock(mutex_);
        std::fwrite(line.data(), 1, line.size(), stderr);
    }

  private:
    static constexpr size_t longest_line_bytes = 4096;
    LogLevel lowest_;
    std::mutex mutex_;
};

void answer_admin(LabNode& node, AdminRequest& request) {
    try {
        request.succeed(administer(node, request.verb(), request.args()));
    } catch (const Error& error) {
        request.fail(error);
    } catch (const std::exception& error) {
        request.fail(Error(ErrorKind::failed, "{}", error.what()));
    }
}

void serve(const Session& session, const std::string& listen, LogLevel lowest_level) {
    LabDirectory directory(session.lab_directory());
    const DirectoryLock lock(directory);
    auto log = std::make_shared<Log>(lowest_level);
    const LogSink sink = [log](LogLevel level, std::string_view text) { (*log)(level, text); };
    const LabCertificate certificate = directory.certificate();
    sem_init(&stop_requested, 0, 0);
    std::signal(SIGTERM, request_stop);
    std::signal(SIGINT, request_stop);
    const auto fatal = [sink](const std::string& reason) {
        sink(LogLevel::error,
             reason +
                 "; the lab node stops, nothing acknowledged is lost: start it again when that is mended");
        failed = true;
        sem_post(&stop_requested);
    };
    LabNode node(directory, certificate, {0, uint64_t{96} << 20, sink, fatal});
    HttpsService::Settings settings;
    const HostPort place = parse_listen(listen);
    settings.address = place.host;
    settings.port = place.port;
    settings.log = sink;
    HttpsService service(certificate, node, settings);
    node.set_port(service.port());
    WorkPool administration(2, most_commands_waiting);
    AdminServer admin(
        directory.admin_socket(),
        [&](std::shared_ptr<AdminRequest> request) {
            if (!administration.offer([&node, request] { answer_admin(node, *request); }))
                request->fail(Error(ErrorKind::failed,
                                    "expected at most {} commands waiting for the lab node, found more; try "
                                    "again in a moment",
                                    most_commands_waiting));
        },
        sink);
    session.print(
        {{"directory", directory.path().string()}, {"address", place.host}, {"port", service.port()}},
        fmt::format("the lab node of {} listens on {} port {}", directory.path().string(), place.host,
                    service.port()));
    std::fflush(stdout);
    while (sem_wait(&stop_requested) != 0) {
    }
    sink(LogLevel::info, "stopping");
    admin.stop();
    node.stop();
    service.stop();
    if (failed) throw Error(ErrorKind::failed, "the lab node could not go on; the log says why");
}

}  // namespace

void add_serve(CLI::App& app, Session& session) {
    struct Options {
        std::string listen = fmt::format("*:{}", default_port);
        std::string level = "info";
    };
    auto options = std::make_shared<Options>();
    CLI::App* const command = add_command(app, "serve", "runs the lab node until SIGTERM or Ctrl-C",
                                          "  goblin-lab serve\n"
                                          "  goblin-lab --dir /srv/lab serve --listen 192.0.2.7:7410\n"
                                          "  goblin-lab serve --listen '[::]:7410'\n");
    command->add_option("--listen", options->listen, "ADDRESS:PORT; * is every address, port 0 any free one")
        ->check(value_of([](const std::string& text) { parse_listen(text); }))
        ->capture_default_str();
    command->add_option("--log-level", options->level, "debug, info, warning or error")
        ->check(one_of({std::begin(level_names), std::end(level_names)}))
        ->capture_default_str();
    command->callback([options, &session] {
        const auto level = std::find(std::begin(level_names), std::end(level_names), options->level);
        try {
            serve(session, options->listen, static_cast<LogLevel>(level - std::begin(level_names)));
        } catch (const Error& error) {
            // To other commands a network error means that no lab node answers; here it is one that can't
            // listen.
            throw Error(error.kind() == ErrorKind::network ? ErrorKind::failed : error.kind(), "{}",
                        error.what());
        }
    });
}

}  // namespace goblin::lab
