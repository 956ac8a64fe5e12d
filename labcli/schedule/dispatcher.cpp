// Chooses tasks for a computer: by what it can take, what it holds already, and chance where chance protects.
#include "labcli/schedule/dispatcher.hpp"

#include <algorithm>

namespace goblin::lab {

namespace {

// Inputs that ride along in one reply; the rest of an exchange's 16 MiB is for everything else.
constexpr uint64_t most_inline_bytes = uint64_t{8} << 20;

// Of a volunteer of whom nothing was verified yet: what it committed to and others wait for counts, too, or
// one invitation would be enough to hold up a job's disputes and the memory of their results.
constexpr size_t newcomer_open_assignments = 8;

uint64_t inline_bytes(const Grant& grant) {
    uint64_t size = 0;
    for (const TaskInputMessage& input : grant.task.inputs) size += input.bytes ? input.bytes->size() : 0;
    return size;
}

}  // namespace

bool Dispatcher::has_work() const {
    return std::any_of(board_.jobs().begin(), board_.jobs().end(), [](const auto& entry) {
        const Job& job = entry.second;
        return !is_over(job.record.state) && job.queue.fresh() + job.queue.window() > 0;
    });
}

bool Dispatcher::eligible(const LiveComputer& computer, const Job& job, const OpenTask& task) {
    if (task.holders.contains(computer.record.volunteer)) return false;
    if (task.prepared.memory_bytes > computer.memory_bytes()) return false;
    if (job.has_floats && !computer.takes_floats()) return false;
    if (board_.judge().wants_trusted(job, task) &&
        !contributors_.volunteer(computer.record.volunteer).trusted)
        return false;
    if (!rules_.spread_over_networks || computer.network.empty()) return true;
    return std::none_of(task.claims.begin(), task.claims.end(), [&](const AssignmentId& id) {
        return contributors_.computer(book_.find(id)->computer)->network == computer.network;
    });
}

Grant Dispatcher::grant_of(const Assignment& assignment, const PreparedTask& task) const {
    return {assignment.id, assignment.key, assignment.duration_ms, *task.message};
}

std::optional<TaskNumber> Dispatcher::choose(const LiveComputer& computer, Job& job, uint64_t quota) {
    const VolunteerId volunteer = computer.record.volunteer;
    const auto may = [&](const OpenTask& task) { return eligible(computer, job, task); };
    const auto held = [&](const OpenTask& task) {
        uint64_t count = 0;
        for (const TaskInputMessage& input : task.prepared.message->inputs)
            count += computer.blobs.contains(input.digest);
        return count;
    };
    const bool may_begin = job.queue.fresh() > 0 && draw_.may_begin(job, volunteer, quota);
    // Neither what it began itself nor what it was drawn for shall starve the other.
    const bool drawn_first = !may_begin || environment_.draw(2) == 0;
    if (drawn_first)
        if (const auto task = job.queue.take_drawn(volunteer, may)) return task;
    if (may_begin)
        if (const auto task = job.queue.take_fresh(may, held)) return task;
    if (!drawn_first)
        if (const auto task = job.queue.take_drawn(volunteer, may)) return task;
    const bool nobody_can = may_begin || !job.queue.undrawn().empty();
    if (nobody_can && job.starved_since_ms == 0) job.starved_since_ms = environment_.now_ms();
    return std::nullopt;
}

bool Dispatcher::grant_one(LiveComputer& computer, Job& job, uint64_t quota, std::vector<Grant>& tasks) {
    board_.settle_policy(job);
    const std::optional<TaskNumber> number = choose(computer, job, quota);
    if (!number) return false;
    job.starved_since_ms = 0;
    board_.begin(job);
    OpenTask& task = *job.queue.find(*number);
    if (task.claims.empty() && !task.given_up) job.queue.begin(task, computer.record.volunteer);
    const Assignment& assignment = book_.issue(computer, job, task);
    tasks.push_back(grant_of(assignment, task.prepared));
    board_.judge().evaluate(job, *number);  // it may lack further replicas
    return true;
}

void Dispatcher::grant(LiveComputer& computer, std::vector<Grant>& tasks) {
    if (!board_.held_back().empty() || environment_.now_ms() < computer.no_tasks_before_ms) return;
    if (!contributors_.why_not(computer).empty() || computer.devices.empty()) return;
    const bool newcomer = contributors_.volunteer(computer.record.volunteer).agreed == 0;
    const uint64_t quota = newcomer ? 1 : computer.quota;
    const uint64_t most_open = newcomer ? newcomer_open_assignments : limits::open_assignments;
    const double flops_per_ms = static_cast<double>(computer.speed_flops()) / 1000;
    draw_.look_around();
    double granted_ms = 0;
    uint64_t bytes = 0;
    for (const Grant& again : tasks) bytes += inline_bytes(again);
    for (auto& [id, job] : board_.jobs()) {
        if (is_over(job.record.state)) continue;
        draw_.draw(job);
        while (tasks.size() < computer.wanted_tasks && computer.uncommitted < quota &&
               computer.open.size() < most_open &&
               (tasks.empty() || granted_ms < static_cast<double>(computer.wanted_work_ms)) &&
               bytes < most_inline_bytes) {
            if (!grant_one(computer, job, quota, tasks)) break;
            granted_ms += static_cast<double>(book_.find(tasks.back().assignment)->flops) / flops_per_ms;
            bytes += inline_bytes(tasks.back());
        }
        draw_.draw(job);
        board_.prepare(job);
    }
}

void Dispatcher::grant_again(const LiveComputer& computer, const std::vector<AssignmentId>& holding,
                             std::vector<Grant>& tasks) {
    const auto known_count = std::count_if(
        holding.begin(), holding.end(), [&](const AssignmentId& id) { return computer.open.contains(id); });
    if (static_cast<size_t>(known_count) >= computer.open.size())
        return;  // the usual case: it knows all of them
    const std::unordered_set<AssignmentId, AssignmentIdHash> known(holding.begin(), holding.end());
    uint64_t bytes = 0;
    for (const AssignmentId& id : computer.open) {
        if (known.contains(id)) continue;
        const Assignment& assignment = *book_.find(id);
        Job* const job = board_.find_unfinished(assignment.job);
        const OpenTask* const task = job == nullptr ? nullptr : job->queue.find(assignment.task);
        if (task == nullptr || assignment.state != AssignmentState::issued) continue;
        tasks.push_back(grant_of(assignment, task->prepared));
        bytes += inline_bytes(tasks.back());
        if (bytes >= most_inline_bytes) return;  // the rest next time
    }
}

}  // namespace goblin::lab
