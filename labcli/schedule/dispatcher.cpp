// Chooses tasks for a computer: by what it can take, what it holds already, and chance where chance protects.
#include "labcli/schedule/dispatcher.hpp"

#include <algorithm>

namespace goblin::lab {

namespace {

// Inputs that ride along in one reply; the rest of an exchange's 16 MiB is for everything else.
constexpr uint64_t most_inline_bytes = uint64_t{8} << 20;

uint64_t inline_bytes(const Grant& grant) {
    uint64_t size = 0;
    for (const TaskInputMessage& input : grant.task.inputs) size += input.bytes ? input.bytes->size() : 0;
    return size;
}

}  // namespace

bool Dispatcher::has_work() const {
    return std::any_of(board_.jobs().begin(), board_.jobs().end(), [](const auto& entry) {
        const Job& job = entry.second;
        return job.record.state == JobState::running && job.queue.fresh() + job.queue.window() > 0;
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

bool Dispatcher::grant_one(LiveComputer& computer, Job& job, std::vector<Grant>& tasks) {
    board_.settle_policy(job);
    const auto may = [&](const OpenTask& task) { return eligible(computer, job, task); };
    // Who came by one invitation may know each other.
    const auto preferred = [&](const OpenTask& task) {
        const InvitationId own = contributors_.volunteer(computer.record.volunteer).invitation;
        return std::none_of(task.holders.begin(), task.holders.end(), [&](VolunteerId holder) {
            return contributors_.volunteer(holder).invitation == own;
        });
    };
    const auto held = [&](const OpenTask& task) {
        uint64_t count = 0;
        for (const TaskInputMessage& input : task.prepared.message->inputs)
            count += computer.blobs.contains(input.digest);
        return count;
    };
    // Enough tasks wait for a second replica that a draw among them says little, however fast somebody asks.
    const size_t window_target = std::clamp<size_t>(16 * board_.independent_volunteers(), 32, 1024);
    const std::optional<TaskNumber> number =
        job.queue.take({may, preferred, held}, window_target, environment_.draw);
    if (!number) {
        if (job.queue.fresh() + job.queue.window() > 0 && job.starved_since_ms == 0)
            job.starved_since_ms = environment_.now_ms();
        return false;
    }
    job.starved_since_ms = 0;
    OpenTask& task = *job.queue.find(*number);
    const Assignment& assignment = book_.issue(computer, job, task);
    tasks.push_back(grant_of(assignment, task.prepared));
    board_.judge().evaluate(job, *number);  // it may lack further replicas
    return true;
}

void Dispatcher::grant(LiveComputer& computer, std::vector<Grant>& tasks) {
    if (!board_.held_back().empty() || environment_.now_ms() < computer.no_tasks_before_ms) return;
    if (!contributors_.why_not(computer).empty() || computer.devices.empty()) return;
    const uint64_t newcomer_quota =
        contributors_.volunteer(computer.record.volunteer).agreed == 0 ? 1 : limits::open_assignments;
    const uint64_t quota = std::min(computer.quota, newcomer_quota);
    const double flops_per_ms = static_cast<double>(computer.speed_flops()) / 1000;
    double granted_ms = 0;
    uint64_t bytes = 0;
    for (const Grant& again : tasks) bytes += inline_bytes(again);
    for (auto& [id, job] : board_.jobs()) {
        if (job.record.state != JobState::running) continue;
        while (tasks.size() < computer.wanted_tasks && computer.uncommitted < quota &&
               computer.open.size() < limits::open_assignments &&
               (tasks.empty() || granted_ms < static_cast<double>(computer.wanted_work_ms)) &&
               bytes < most_inline_bytes) {
            if (!grant_one(computer, job, tasks)) break;
            granted_ms += static_cast<double>(book_.find(tasks.back().assignment)->flops) / flops_per_ms;
            bytes += inline_bytes(tasks.back());
        }
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
        Job* const job = board_.find_running(assignment.job);
        const OpenTask* const task = job == nullptr ? nullptr : job->queue.find(assignment.task);
        if (task == nullptr || assignment.state != AssignmentState::issued) continue;
        tasks.push_back(grant_of(assignment, task->prepared));
        bytes += inline_bytes(tasks.back());
        if (bytes >= most_inline_bytes) return;  // the rest next time
    }
}

}  // namespace goblin::lab
