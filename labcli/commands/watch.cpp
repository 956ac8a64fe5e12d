// Follows a job and says how it went.
#include "labcli/commands/watch.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"
#include "labcli/admin/admin_client.hpp"
#include "labcli/node/lab_directory.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::atomic<bool> interrupted{false};

constexpr size_t most_named = 10;
constexpr milliseconds poll_interval{200};
constexpr milliseconds plain_interval{5'000};  // between progress lines where nobody sees them replaced
constexpr milliseconds node_patience{20'000};  // for a lab node that is being restarted

bool is_over(const json& status) {
    const std::string state = status.at("state").get<std::string>();
    return state == "done" || state == "failed" || state == "stopped";
}

// One line that is replaced on a terminal, and repeated now and then elsewhere.
class ProgressLine {
  public:
    explicit ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}
    void show(const std::string& text) {
        if (quiet_ || text == shown_) return;
        const auto now = steady_clock::now();
        if (!terminal_ && now - shown_at_ < plain_interval && !shown_.empty()) return;
        // A line that wraps would leave its first rows behind. The last column stays free, and so does one
        // for the ellipsis.
        winsize window{};
        const bool known = terminal_ && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 4;
        const size_t most = known ? size_t{window.ws_col} - 2 : SIZE_MAX;
        fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", plain_text(text, most),
                   terminal_ ? "" : "\n");
        std::fflush(stderr);
        shown_ = text;
        shown_at_ = now;
    }
    void end() {
        if (!quiet_ && terminal_ && !shown_.empty()) fmt::print(stderr, "\r\x1b[K");
    }

  private:
    bool quiet_;
    bool terminal_;
    std::string shown_;
    steady_clock::time_point shown_at_;
};

// The last known status stays valid while a lab node is being restarted: jobs survive that.
json ask_patiently(const Session& session, uint64_t id, ProgressLine& line) {
    const auto give_up = steady_clock::now() + node_patience;
    while (true) {
        try {
            return session.ask("job.status", {{"id", id}});
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::network || steady_clock::now() > give_up || interrupted) throw;
            line.show(fmt::format(
                "job {}: the lab node doesn't answer; it goes on by itself once it runs again", id));
        }
        std::this_thread::sleep_for(poll_interval);
    }
}

// "computer 2 (Zoë's PC), computer 5 (lab-5)"
std::string computers_of(const json& volunteer) {
    std::string text;
    for (const json& computer : volunteer["computers"])
        text += fmt::format("{}computer {} ({})", text.empty() ? "" : ", ", computer["id"].get<uint64_t>(),
                            computer["name"].get<std::string>());
    return text;
}

}  // namespace

std::string progress_text(const json& status) {
    const auto tasks = status["tasks"].get<uint64_t>();
    const auto accepted = status["accepted"].get<uint64_t>();
    std::string text = fmt::format("job {}: {}, {} of {}", status["id"].get<uint64_t>(),
                                   status["state"].get<std::string>(), accepted, count_text(tasks, "task"));
    if (tasks > 0) text += fmt::format(" ({} %)", accepted * 100 / tasks);
    if (!is_over(status) && status["left_s"].is_number())
        text += fmt::format(", about {} left", duration_text(milliseconds_of(status["left_s"])));
    const std::string reason = status["reason"].get<std::string>();
    if (!reason.empty()) text += ": " + reason;
    return text;
}

std::string report_text(const json& status) {
    const json& verification = status["verification"];
    std::string text =
        fmt::format("{}\nresult: {}\ncomputed in {} by:", progress_text(status),
                    status["output"].get<std::string>(), duration_text(milliseconds_of(status["elapsed_s"])));
    if (status["tasks"] == 0)
        return fmt::format("{}\nresult: {}\nnothing to compute: no task was needed", progress_text(status),
                           status["output"].get<std::string>());
    size_t named = 0;
    for (const json& volunteer : status["computed_by"]) {
        if (named++ == most_named) {
            text += fmt::format("\n  and {} more (goblin-lab node list)",
                                status["computed_by"].size() - most_named);
            break;
        }
        text += fmt::format("\n  volunteer {} ({}): {}", volunteer["volunteer"].get<uint64_t>(),
                            computers_of(volunteer),
                            count_text(volunteer["results"].get<uint64_t>(), "verified result"));
    }
    text += fmt::format("\nverified by: {}", verification["policy"].get<std::string>());
    if (verification["replicas"].get<uint64_t>() > 1)
        text += fmt::format(", {} volunteers for each task", verification["replicas"].get<uint64_t>());
    text += fmt::format("\npromise: {}", verification["promise"].get<std::string>());
    if (verification.contains("rows_checked"))
        text += fmt::format("\nchecked rows: {}, of which recomputed exactly: {}",
                            verification["rows_checked"].get<uint64_t>(),
                            verification["rows_recomputed"].get<uint64_t>());
    if (verification.contains("delta")) {
        const json& delta =
            verification["delta"];  // null where nothing can be promised: infinity has no JSON
        text += delta.is_number()
                    ? fmt::format(
                          "\nbound delta: no element is off by more than {:.3g}; a task that breaks this "
                          "passes at most 1 in 1,000,000 times",
                          delta.get<double>())
                    : std::string(
                          "\nbound delta: none can be promised for these operands; use --verify recompute");
    }
    if (const auto disputes = verification["disputes"].get<uint64_t>(); disputes > 0)
        text += fmt::format("\nwrong or disputed results found and kept out: {} (goblin-lab job logs {})",
                            disputes, status["id"].get<uint64_t>());
    return text;
}

int watch_job(const Session& session, uint64_t id, uint64_t timeout_ms) {
    interrupted = false;
    const auto previous = std::signal(SIGINT, [](int) { interrupted = true; });
    const auto end = steady_clock::now() + milliseconds(timeout_ms);
    ProgressLine line(session.quiet || session.json);
    json status = ask_patiently(session, id, line);
    while (!is_over(status) && !interrupted && (timeout_ms == 0 || steady_clock::now() < end)) {
        line.show(progress_text(status));
        std::this_thread::sleep_for(poll_interval);
        status = ask_patiently(session, id, line);
    }
    line.end();
    std::signal(SIGINT, previous);
    if (!is_over(status)) {
        session.note(fmt::format("detached; job {} goes on. Return with: {}", id,
                                 session.command(fmt::format("job watch {}", id))));
        session.print(status, progress_text(status));
        return exit_detached;
    }
    const bool done = status["state"] == "done";
    session.print(status, done ? report_text(status) : progress_text(status));
    return done ? exit_done : exit_failed;
}

}  // namespace goblin::lab
