// Puts a job's report together.
#include "labcli/schedule/job_report.hpp"

#include <nlohmann/json.hpp>

namespace goblin::lab {

namespace {

using nlohmann::json;

// A volunteer has no name of its own: its computers' names tell people who it is.
json computers_of(Contributors& contributors, VolunteerId volunteer) {
    json computers = json::array();
    for (const auto& [id, computer] : contributors.computers())
        if (computer.record.volunteer == volunteer)
            computers.push_back({{"id", id}, {"name", computer.record.name}});
    return computers;
}

}  // namespace

json report_of(const Job& job, Contributors& contributors, uint64_t now_ms, bool is_computed) {
    const PolicyChoice& choice = job.record.choice;
    json by = json::array();
    for (const auto& [volunteer, tasks] : job.agreed_results)
        by.push_back({{"volunteer", volunteer},
                      {"computers", computers_of(contributors, volunteer)},
                      {"results", tasks}});
    std::sort(by.begin(), by.end(),
              [](const json& a, const json& b) { return a["volunteer"] < b["volunteer"]; });
    const uint64_t accepted = job.queue.accepted();
    const double elapsed_s = static_cast<double>(now_ms - job.started_ms) / 1000;
    const auto done_here = static_cast<double>(accepted - std::min(accepted, job.accepted_at_start));
    const auto left = static_cast<double>(job.queue.tasks() - accepted);
    json report = {{"plan", job.summary.text},
                   {"tasks", job.queue.tasks()},
                   {"accepted", accepted},
                   {"flops", job.summary.flops},
                   {"elapsed_s", elapsed_s},
                   {"left_s", nullptr},
                   {"computed_by", by},
                   {"verification",
                    {{"policy", std::string(name_of(choice.resolved))},
                     {"replicas", job.replicas()},
                     {"promise", promise_text(choice.resolved, choice.replicas, !job.has_floats)},
                     {"bits_promised", choice.resolved != Policy::product || !job.has_floats},
                     {"disputes", job.record.tally.disputes},
                     {"tasks_computed_by_lab", job.record.tally.computed_by_lab}}}};
    if (done_here > 0 && is_computed) report["left_s"] = elapsed_s / done_here * left;
    if (choice.resolved == Policy::product) {
        report["verification"]["rows_checked"] = job.record.tally.rows_checked;
        report["verification"]["rows_recomputed"] = job.record.tally.rows_recomputed;
        if (job.has_floats) report["verification"]["delta"] = job.record.tally.delta;
    }
    return report;
}

}  // namespace goblin::lab
