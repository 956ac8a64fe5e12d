// goblin-lab job: shows, follows and ends jobs.
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"
#include "labcli/commands/watch.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

constexpr uint64_t most_lines = 10'000;

struct JobOptions {
    uint64_t id = 0;
    uint64_t most = 1'000;
    std::string timeout;
};

void list(const Session& session) {
    const json all = session.ask("job.list", json::object());
    std::string text;
    for (const json& job : all)
        text += fmt::format("{}{}  {}", text.empty() ? "" : "\n", progress_text(job),
                            job["output"].get<std::string>());
    session.print(all, text.empty() ? "no jobs" : text);
}

void logs(const Session& session, const JobOptions& options) {
    const json lines = session.ask("job.logs", {{"id", options.id}, {"most", options.most}});
    std::string text;
    for (const json& line : lines)
        text += fmt::format("{}{}  {}", text.empty() ? "" : "\n", time_text(line["at_ms"].get<uint64_t>()),
                            line["text"].get<std::string>());
    session.print(lines, text);
}

void result(Session& session, uint64_t id) {
    const json status = session.ask("job.status", {{"id", id}});
    if (status["state"] != "done") {
        session.print(status, progress_text(status));
        session.exit_code =
            status["state"] == "failed" || status["state"] == "stopped" ? exit_failed : exit_detached;
        return;
    }
    session.print(status, report_text(status));
}

}  // namespace

void add_job(CLI::App& app, Session& session) {
    auto options = std::make_shared<JobOptions>();
    CLI::App* const command =
        add_command(app, "job", "shows, follows and ends jobs",
                    "  goblin-lab job list\n"
                    "  goblin-lab job watch 3\n"
                    "  goblin-lab job logs 3      who got what, what came back, verdicts, reasons\n");
    command->require_subcommand(1);
    const auto add = [&](const std::string& name, const std::string& what, auto run) {
        CLI::App* const verb =
            add_command(*command, name, what, fmt::format("  goblin-lab job {} 3\n", name));
        verb->add_option("ID", options->id, "the job's number")
            ->required()
            ->check(whole_number(1, largest_id));
        verb->callback([options, &session, run] { run(session, *options); });
        return verb;
    };
    add_command(*command, "list", "shows all jobs", "  goblin-lab job list\n")->callback([&session] {
        list(session);
    });
    add("status", "says how far a job is and why it waits", [](Session& s, const JobOptions& o) {
        const json status = s.ask("job.status", {{"id", o.id}});
        s.print(status, progress_text(status));
    });
    add("watch", "follows a job until it is over; Ctrl-C detaches",
        [](Session& s, const JobOptions& o) {
            s.ask("job.status", {{"id", o.id}});  // where no lab node runs, nothing can be waited for
            s.exit_code = watch_job(s, o.id, o.timeout.empty() ? 0 : positive_duration_ms(o.timeout));
        })
        ->add_option("--timeout", options->timeout, "detach after so long, for example 10m")
        ->check(value_of(positive_duration_ms));
    add("logs", "tells a job's history", [](Session& s, const JobOptions& o) { logs(s, o); })
        ->add_option("--most", options->most, "how many lines at most, the last ones")
        ->check(whole_number(1, most_lines))
        ->capture_default_str();
    add("stop", "stops a job; its unfinished output is removed", [](Session& s, const JobOptions& o) {
        const json status = s.ask("job.stop", {{"id", o.id}});
        const bool was_over = status["state"] != "stopped";
        s.print(status, (was_over ? "it was over before: " : "") + progress_text(status));
    });
    add("delete", "forgets a job that is over; its output stays", [](Session& s, const JobOptions& o) {
        s.print(s.ask("job.delete", {{"id", o.id}}), fmt::format("job {} is forgotten", o.id));
    });
    add("result", "says where the result is and what verifying it promises",
        [](Session& s, const JobOptions& o) { result(s, o.id); });
}

}  // namespace goblin::lab
