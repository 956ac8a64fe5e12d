// Submits, shows and ends jobs.
#include "labcli/node/job_verbs.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "labcli/jobs/kinds.hpp"
#include "labcli/schedule/job_report.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

constexpr uint64_t most_log_lines = 10'000;

struct Submission {
    const JobKind& kind;
    json specification;
    PolicyChoice choice;
    PlanSummary summary;
};

PolicyChoice policy_of(const json& arguments) {
    PolicyChoice choice;
    const std::string name = arguments.value("verify", std::string(name_of(PolicyChoice().policy)));
    const std::optional<Policy> policy = policy_from_name(name);
    if (!policy) throw Error(ErrorKind::usage, "expected the policy {}, found '{}'", policy_names(), name);
    choice.policy = *policy;
    choice.replicas = arguments.value("replicas", default_replicas);
    if (choice.replicas < 2 || choice.replicas > largest_replicas)
        throw Error(ErrorKind::usage, "expected 2 to {} replicas, found {}", largest_replicas,
                    choice.replicas);
    return choice;
}

// What a record keeps as JSON; an empty object where that can't be read.
json stored(const std::string& text) {
    json document = json::parse(text, nullptr, false);
    return document.is_object() ? document : json::object();
}

// A file that can't be read as an operand is a wrong submission: no job failed.
json plan_of(const JobKind& kind, const json& arguments, const Capacity& capacity) {
    try {
        return kind.plan(arguments, capacity);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input && error.kind() != ErrorKind::io) throw;
        throw Error(ErrorKind::usage, error.what());
    }
}

// Empty where a kind has none.
std::filesystem::path output_of(const json& specification) {
    const auto output = specification.find("output");
    return output != specification.end() && output->is_string() ? output->get<std::string>() : std::string();
}

bool is_one_file(const std::filesystem::path& one, const std::filesystem::path& other) {
    if (one.filename() != other.filename()) return false;
    std::error_code unknown;
    return one == other || std::filesystem::equivalent(one.parent_path(), other.parent_path(), unknown);
}

// Of two jobs that write one file, the one that ends later would find the other's result in its place.
// Zero: nobody writes it.
JobId writer_of(LabNode::Parts& parts, const std::filesystem::path& output) {
    if (output.empty()) return 0;
    for (const auto& [id, job] : parts.board.jobs())
        if (!is_over(job.record.state) && is_one_file(output_of(stored(job.record.specification)), output))
            return id;
    return 0;
}

void expect_no_writer(JobId writer, const std::filesystem::path& output) {
    if (writer == 0) return;
    throw Error(ErrorKind::usage,
                "expected an output that no unfinished job writes, found job {} writing {}; choose another "
                "name, wait for that job, or stop it with `goblin-lab job stop {}`",
                writer, output.string(), writer);
}

Submission plan_submission(LabNode& node, const json& arguments) {
    const JobKind& kind = job_kind(arguments.at("kind").get<std::string>());
    const Capacity capacity = node.administer([](LabNode::Parts parts) { return parts.board.presence().capacity(); });
    Submission submission{kind, plan_of(kind, arguments.at("arguments"), capacity), policy_of(arguments), {}};
    submission.summary = kind.summarize(submission.specification);
    const std::filesystem::path output = output_of(submission.specification);
    expect_no_writer(node.administer([&](LabNode::Parts parts) { return writer_of(parts, output); }), output);
    if (!arguments.contains("max_wrong")) return submission;
    const double max_wrong = arguments.at("max_wrong").get<double>();
    if (!(max_wrong >= 0 && max_wrong <= 1))
        throw Error(ErrorKind::usage, "expected a probability from 0 to 1, found {}", max_wrong);
    // `auto` must keep the promise whatever it settles on: recomputing keeps any.
    const bool integers = !submission.summary.has_floats;
    if (submission.choice.policy != Policy::automatic)
        expect_promise(submission.choice.policy, submission.choice.replicas, integers, max_wrong);
    else if (!keeps_promise(integers ? Policy::product : Policy::redundant, submission.choice.replicas,
                            integers, max_wrong))
        submission.choice.policy = Policy::recompute;
    return submission;
}

json json_of(const Submission& submission) {
    const PlanSummary& summary = submission.summary;
    return {
        {"kind", std::string(submission.kind.name)},
        {"plan", summary.text},
        {"tasks", summary.tasks},
        {"flops", summary.flops},
        {"flops_per_task", summary.flops_per_task},
        {"memory_per_task_bytes", summary.memory_per_task_bytes},
        {"bytes_down", summary.bytes_down},
        {"bytes_up", summary.bytes_up},
        {"verify", std::string(name_of(submission.choice.policy))},
        {"promise", promise_text(submission.choice.policy, submission.choice.replicas, !summary.has_floats)}};
}

Job& expect_job(LabNode::Parts& parts, JobId id) {
    Job* const job = parts.board.find(id);
    if (job == nullptr)
        throw Error(
            ErrorKind::usage,
            "expected a job of this lab, found none with the number {}; `goblin-lab job list` shows them",
            id);
    return *job;
}

json status_of(LabNode::Parts& parts, Job& job) {
    const JobRecord& record = job.record;
    json status = is_over(record.state) ? stored(record.report) : json::object();
    if (status.empty())
        status = report_of(job, parts.contributors, parts.environment.now_ms(), parts.board.is_computed(job));
    status["id"] = record.id;
    status["kind"] = record.kind;
    status["state"] = std::string(name_of(record.state));
    status["reason"] = parts.board.reason_of(job);
    status["verify"] = std::string(name_of(record.choice.policy));
    status["created_at_ms"] = record.created_at_ms;
    status["ended_at_ms"] = record.ended_at_ms;
    status["output"] = output_of(stored(record.specification)).string();
    return status;
}

// The one that nobody will fill.
void discard_output(Plan& plan) {
    try {
        plan.discard();
    } catch (const std::exception&) {
        // What couldn't be removed is named .partial-… beside the target; nothing depends on it.
    }
}

// Keeps the record; from then on the lab node has the job.
JobId add_job(LabNode& node, const Submission& submission, const std::shared_ptr<Plan>& plan) {
    return node.administer([&](LabNode::Parts parts) {
        // Again: another submission may have come between.
        const std::filesystem::path output = output_of(submission.specification);
        expect_no_writer(writer_of(parts, output), output);
        JobRecord record;
        record.id = parts.board.next_id();
        record.kind = submission.kind.name;
        record.specification = submission.specification.dump();
        record.choice = submission.choice;
        record.tasks = submission.summary.tasks;
        record.created_at_ms = parts.environment.wall_ms();
        const JobId id = record.id;
        parts.store.event(id, "submitted: " + submission.summary.text);
        parts.board.add(std::move(record), plan, {});
        return id;
    });
}

}  // namespace

json job_plan(LabNode& node, const json& arguments) {
    return json_of(plan_submission(node, arguments));
}

json job_submit(LabNode& node, const json& arguments) {
    Submission submission = plan_submission(node, arguments);
    if (submission.summary.tasks > most_tasks)
        throw Error(ErrorKind::usage, "expected at most {} tasks, found {}; take larger tiles", most_tasks,
                    submission.summary.tasks);
    std::shared_ptr<Plan> plan = submission.kind.open(submission.specification, true);
    json answer = json_of(submission);
    try {
        answer["id"] = add_job(node, submission, plan);
    } catch (const std::exception&) {
        discard_output(*plan);
        throw;
    }
    return answer;
}

json job_list(LabNode& node, const json&) {
    return node.administer([](LabNode::Parts parts) {
        json all = json::array();
        for (auto& [id, job] : parts.board.jobs()) all.push_back(status_of(parts, job));
        return all;
    });
}

json job_status(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<JobId>();
    return node.administer([id](LabNode::Parts parts) { return status_of(parts, expect_job(parts, id)); });
}

json job_logs(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<JobId>();
    const auto most = std::min(arguments.value("most", most_log_lines), most_log_lines);
    return node.administer([id, most](LabNode::Parts parts) {
        expect_job(parts, id);
        json lines = json::array();
        for (const HistoryLine& line : parts.store.history(id, most))
            lines.push_back({{"at_ms", line.at_ms}, {"text", line.text}});
        return lines;
    });
}

json job_stop(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<JobId>();
    return node.administer([id](LabNode::Parts parts) {
        Job& job = expect_job(parts, id);
        if (!is_over(job.record.state)) parts.board.end(job, JobState::stopped, "stopped by its owner");
        return status_of(parts, job);
    });
}

json job_delete(LabNode& node, const json& arguments) {
    const auto id = arguments.at("id").get<JobId>();
    return node.administer([id](LabNode::Parts parts) {
        Job& job = expect_job(parts, id);
        if (!is_over(job.record.state))
            throw Error(
                ErrorKind::usage,
                "expected a job that is over, found job {} {}; stop it first with `goblin-lab job stop {}`",
                id, name_of(job.record.state), id);
        parts.board.forget(id);
        return json{{"id", id}};
    });
}

}  // namespace goblin::lab
