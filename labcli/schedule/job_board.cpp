// Prepares, follows and ends jobs.
#include "labcli/schedule/job_board.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/quantity.hpp"
#include "labcli/schedule/job_report.hpp"

namespace goblin::lab {

namespace {

// Tasks prepared ahead of being handed out, and how many at a time.
constexpr size_t prepared_ahead = 2048;
constexpr size_t prepared_at_once = 1024;
// Slices of one batch together: the first tasks of a job go out before its last slice has been read.
constexpr uint64_t prepared_bytes_at_once = uint64_t{128} << 20;
// How long a job with policy `auto` goes short of volunteers before the lab recomputes instead.
constexpr uint64_t shortage_patience_ms = 10'000;
// How long nobody may be eligible for what is left before those who failed it may try again.
constexpr uint64_t stuck_ms = 5'000;
constexpr uint64_t inputs_checked_every_ms = 1'000;

// Of numbers that came by themselves, not inside an exchange.
uint64_t uploaded_bytes(const Assignment& assignment) {
    uint64_t bytes = 0;
    if (assignment.state != AssignmentState::returned || !assignment.outputs) return bytes;
    for (const Tensor& output : *assignment.outputs)
        if (output.size_bytes() > limits::inline_tensor_bytes) bytes += output.size_bytes();
    return bytes;
}

}  // namespace

JobBoard::JobBoard(const Environment& environment, Contributors& contributors, AssignmentBook& book,
                   Journal& journal, Workshop& workshop, std::function<void()> work_arrived)
    : environment_(environment),
      contributors_(contributors),
      book_(book),
      journal_(journal),
      workshop_(workshop),
      work_arrived_(std::move(work_arrived)),
      presence_(environment, contributors),
      judge_(
          environment, contributors, book, journal, workshop,
          [this](JobId id) { return find_unfinished(id); }, [this] { return presence_.trusted_machine(); },
          [this](Job& job) {
              finish_if_complete(job);
              work_arrived_();
          },
          [this](Job& job, const std::string& reason) { end(job, JobState::failed, reason); }) {}

Job* JobBoard::find(JobId id) {
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? nullptr : &found->second;
}

Job* JobBoard::find_unfinished(JobId id) {
    Job* const job = find(id);
    return job != nullptr && !is_over(job->record.state) ? job : nullptr;
}

void JobBoard::add(JobRecord record, std::shared_ptr<Plan> plan, Past past) {
    const JobId id = record.id;
    last_id_ = std::max(last_id_, id);
    Job& job = jobs_.try_emplace(id, std::move(record), std::move(plan), past.accepted, environment_.now_ms())
                   .first->second;
    journal_.job(job.record);
    job.agreed_results = std::move(past.agreed_results);
    if (!past.open.empty()) restore_assignments(job, std::move(past.open));
    prepare(job);
    finish_if_complete(job);
}

void JobBoard::add_ended(JobRecord record) {
    const JobId id = record.id;
    last_id_ = std::max(last_id_, id);
    jobs_.try_emplace(id, std::move(record));
}

void JobBoard::add_broken(JobRecord record, PlanSummary summary, Past past, std::string reason) {
    const JobId id = record.id;
    last_id_ = std::max(last_id_, id);
    Job& job =
        jobs_.try_emplace(id, std::move(record), std::move(summary), past.accepted, environment_.now_ms())
            .first->second;
    job.agreed_results = std::move(past.agreed_results);
    cancel_stored(std::move(past.open), "the job is over (failed)");
    end(job, JobState::failed, std::move(reason));
}

// Assignments that the book never knew, because nobody can go on with them.
void JobBoard::cancel_stored(std::vector<Assignment> open, const std::string& reason) {
    for (Assignment& assignment : open) {
        assignment.state = AssignmentState::cancelled;
        assignment.reason = reason;
        journal_.assignment_changed(assignment);
    }
}

void JobBoard::restore_assignments(Job& job, std::vector<Assignment> open) {
    std::set<TaskNumber> numbers;
    for (const Assignment& assignment : open) numbers.insert(assignment.task);
    job.preparing = true;
    ++restoring_;
    auto restore = [this, id = job.record.id, open = std::move(open)](const PrepareAnswer& answer) {
        --restoring_;
        Job* const found = find_unfinished(id);
        if (found == nullptr || !answer.error.empty()) {
            cancel_stored(open, "the job is over");
            if (found != nullptr) end(*found, JobState::failed, answer.error);
            return;
        }
        for (const PreparedTask& prepared : answer.tasks) found->queue.reopen(prepared);
        for (const Assignment& assignment : open) {
            OpenTask* const task = found->queue.find(assignment.task);
            if (task != nullptr && contributors_.computer(assignment.computer) != nullptr)
                book_.restore(assignment, *task);
            else
                cancel_stored({assignment}, "its computer or its task is gone");
        }
        found->preparing = false;
        evaluate_all(*found);
        prepare(*found);
        work_arrived_();
    };
    workshop_.prepare(job.plan, job.record.id, {numbers.begin(), numbers.end()}, std::move(restore));
}

void JobBoard::prepare(Job& job) {
    if (job.preparing || is_over(job.record.state)) return;
    if (job.queue.fresh() + job.queue.window() >= prepared_ahead || job.queue.unprepared() == 0) return;
    uint64_t task_bytes = 1;
    for (const SliceNumber slice : job.plan->slices(0))
        task_bytes += job.plan->slice_spec(slice).size_bytes();
    const uint64_t most = std::clamp<uint64_t>(prepared_bytes_at_once / task_bytes, 1, prepared_at_once);
    std::vector<TaskNumber> numbers = job.queue.take_numbers(most);
    if (numbers.empty()) return;
    job.preparing = true;
    workshop_.prepare(job.plan, job.record.id, std::move(numbers),
                      [this, id = job.record.id](const PrepareAnswer& answer) { take_prepared(id, answer); });
}

void JobBoard::take_prepared(JobId id, const PrepareAnswer& answer) {
    Job* const job = find_unfinished(id);
    if (job == nullptr) return;
    job->preparing = false;
    if (!answer.error.empty()) {
        end(*job, JobState::failed, answer.error);
        return;
    }
    for (const PreparedTask& task : answer.tasks) job->queue.add_prepared(task);
    prepare(*job);
    work_arrived_();
}

void JobBoard::settle_policy(Job& job) {
    PolicyChoice& choice = job.record.choice;
    if (choice.resolved != Policy::automatic) return;
    if (choice.policy != Policy::automatic)
        choice.resolved = choice.policy;
    else if (job.plan->is_product() && !job.has_floats)
        choice.resolved = Policy::product;
    else
        choice.resolved =
            presence_.independent_volunteers() >= choice.replicas ? Policy::redundant : Policy::recompute;
    journal_.job(job.record);
    journal_.event(job.record.id,
                   fmt::format("verified by {}: {}", name_of(choice.resolved),
                               promise_text(choice.resolved, choice.replicas, !job.has_floats)));
}

void JobBoard::begin(Job& job) {
    if (job.record.state != JobState::queued) return;
    job.record.state = JobState::running;
    journal_.job(job.record);
}

// Contributors may hold the slices of all that is left, so nothing of the operands is read for a long time:
// what they compute with numbers that are the operands' no more would be in vain.
void JobBoard::check_inputs(Job& job) {
    const uint64_t now_ms = environment_.now_ms();
    const bool due = job.record.state == JobState::running && !job.finishing && !job.checking_inputs &&
                     now_ms - job.inputs_checked_ms >= inputs_checked_every_ms;
    if (!due) return;
    job.checking_inputs = true;
    job.inputs_checked_ms = now_ms;
    workshop_.check_inputs(job.plan, [this, id = job.record.id](const std::string& error) {
        Job* const found = find_unfinished(id);
        if (found == nullptr) return;
        found->checking_inputs = false;
        if (!error.empty()) end(*found, JobState::failed, error);
    });
}

void JobBoard::finish_if_complete(Job& job) {
    if (!job.queue.complete() || job.finishing || is_over(job.record.state)) return;
    job.finishing = true;
    workshop_.finish(job.plan, [this, id = job.record.id](const std::string& error) {
        Job* const found = find_unfinished(id);
        if (found == nullptr) return;
        if (error.empty())
            end(*found, JobState::done, {});
        else
            end(*found, JobState::failed, error);
    });
}

void JobBoard::end(Job& job, JobState state, std::string reason) {
    assert(is_over(state) && !is_over(job.record.state));
    job.record.state = state;
    job.record.reason = std::move(reason);
    job.record.ended_at_ms = environment_.wall_ms();
    job.record.report = report_of(job, contributors_, environment_.now_ms(), true).dump();
    std::vector<AssignmentId> claims;
    for (const auto& [number, task] : job.queue.open())
        claims.insert(claims.end(), task.claims.begin(), task.claims.end());
    for (const AssignmentId& id : claims)
        book_.cancel(*book_.find(id), fmt::format("the job is over ({})", name_of(state)));
    for (const auto& [number, task] : job.queue.open()) job.queue.find(number)->claims.clear();
    job.queue.close();
    if (state != JobState::done && job.plan) workshop_.discard(job.plan);
    job.plan.reset();  // and with it its files
    journal_.event(job.record.id, job.record.reason.empty()
                                      ? std::string(name_of(state))
                                      : fmt::format("{}: {}", name_of(state), job.record.reason));
    journal_.job(job.record);
    work_arrived_();
}

void JobBoard::forget(JobId id) {
    assert(is_over(jobs_.at(id).record.state));
    jobs_.erase(id);
    journal_.delete_job(id);
}

void JobBoard::evaluate_all(Job& job) {
    std::vector<TaskNumber> numbers;
    for (const auto& [number, task] : job.queue.open()) numbers.push_back(number);
    for (const TaskNumber number : numbers) judge_.evaluate(job, number);
    judge_.look();
}

std::string JobBoard::reason_of(Job& job) {
    if (is_over(job.record.state)) return job.record.reason;
    if (!held_back_.empty()) return held_back_;
    if (job.finishing) return "writing the output's last bytes";
    if (std::string reason = why_nobody_computes(); !reason.empty()) return reason;
    const uint64_t independent = presence_.independent_volunteers();
    if (independent == 0) return "waiting for a person to approve a volunteer (goblin-lab node list)";
    if (job.replicas() > independent && job.queue.fresh() == 0 && job.queue.unprepared() == 0)
        return fmt::format("waiting for {}: each task needs {}",
                           count_text(job.replicas() - independent, "more independent volunteer"),
                           job.replicas());
    if (std::string reason = why_too_little_memory(job); !reason.empty()) return reason;
    if (book_.size() == 0 && job.preparing) return "reading the operands";
    if (job.record.state == JobState::queued) return whose_turn_it_is(job);
    return computing;
}

std::string JobBoard::why_nobody_computes() {
    const uint64_t now_ms = environment_.now_ms();
    uint64_t heard_ms = 0;
    ComputerId pending = 0;
    for (const auto& [id, computer] : contributors_.computers()) {
        if (computer.is_connected(now_ms)) return {};
        heard_ms = std::max(heard_ms, computer.last_seen_ms);
        if (contributors_.volunteer(computer.record.volunteer).state == MemberState::pending) pending = id;
    }
    if (pending != 0)
        return fmt::format("waiting for a person to approve a volunteer: goblin-lab node approve {}",
                           pending);
    return heard_ms == 0
               ? "waiting for contributors: none is connected"
               : fmt::format("waiting for contributors: none is connected, the last was heard {} ago",
                             duration_text(now_ms - heard_ms));
}

std::string JobBoard::why_too_little_memory(const Job& job) {
    const uint64_t largest_bytes = presence_.largest_memory_bytes();
    const uint64_t needed_bytes = job.summary.memory_per_task_bytes;
    const auto& open = job.queue.open();
    const bool in_hand =
        std::any_of(open.begin(), open.end(), [](const auto& entry) { return !entry.second.claims.empty(); });
    if (in_hand || needed_bytes <= largest_bytes || largest_bytes == 0) return {};
    return fmt::format(
        "waiting for a contributor with {} of memory for a task: the largest of those connected has {}",
        size_text(needed_bytes), size_text(largest_bytes));
}

// Of a job of which nothing has been handed out.
std::string JobBoard::whose_turn_it_is(const Job& job) {
    for (const auto& [id, other] : jobs_) {
        if (id >= job.record.id) break;
        const size_t left = other.queue.fresh() + other.queue.window() + other.queue.unprepared();
        if (!is_over(other.record.state) && left > 0)
            return fmt::format("waiting for its turn: job {} comes first", id);
    }
    return "waiting for a contributor to ask for tasks";
}

void JobBoard::make_room(uint64_t size_bytes) {
    std::vector<Assignment*> waiting;
    uint64_t possible_bytes = 0;
    for (const auto& [id, job] : jobs_)
        for (const auto& [number, task] : job.queue.open()) {
            if (!judge_.waits_for_numbers(task)) continue;
            for (const AssignmentId& claim : task.claims)
                if (Assignment* const found = book_.find(claim); uploaded_bytes(*found) > 0) {
                    waiting.push_back(found);
                    possible_bytes += uploaded_bytes(*found);
                }
        }
    if (possible_bytes < size_bytes) return;
    uint64_t freed_bytes = 0;
    for (Assignment* const assignment : waiting) {
        if (freed_bytes >= size_bytes) return;
        freed_bytes += uploaded_bytes(*assignment);
        journal_.event(assignment->job,
                       fmt::format("task {}: the numbers of computer {} gave way to others', since somebody "
                                   "else hasn't sent any: they are asked for again",
                                   assignment->task, assignment->computer));
        book_.forget_outputs(*assignment);
    }
}

void JobBoard::fall_back_to_recompute(Job& job) {
    const PolicyChoice& choice = job.record.choice;
    const bool short_of_volunteers = choice.policy == Policy::automatic &&
                                     choice.resolved == Policy::redundant &&
                                     presence_.independent_volunteers() < choice.replicas;
    if (!short_of_volunteers) {
        job.short_of_volunteers_since_ms = 0;
        return;
    }
    const uint64_t now_ms = environment_.now_ms();
    if (job.short_of_volunteers_since_ms == 0) job.short_of_volunteers_since_ms = now_ms;
    if (now_ms - job.short_of_volunteers_since_ms < shortage_patience_ms) return;
    job.record.choice.resolved = Policy::recompute;
    journal_.job(job.record);
    journal_.event(job.record.id,
                   "too few independent volunteers are left: the lab recomputes the remaining tasks");
    evaluate_all(job);
}

void JobBoard::unstick(Job& job) {
    const uint64_t now_ms = environment_.now_ms();
    if (job.starved_since_ms == 0 || now_ms - job.starved_since_ms < stuck_ms) return;
    for (const auto& [number, open] : job.queue.open()) {
        if (open.queue == OpenTask::Queue::none || open.drawn != 0) continue;
        OpenTask& task = *job.queue.find(number);
        std::erase_if(task.claims, [&](const AssignmentId& id) {
            Assignment& claim = *book_.find(id);
            // A computer that is there and still lists it computes it, however slowly: taking it away and
            // giving it again would never end.
            const bool there =
                now_ms - contributors_.computer(claim.computer)->last_seen_ms < limits::silence_ms;
            if (claim.state != AssignmentState::expired || there) return false;
            book_.cancel(claim, "too late: the task is handed out again");
            return true;
        });
        task.holders.clear();
        for (const AssignmentId& id : task.claims) task.holders.insert(book_.find(id)->volunteer);
    }
    job.starved_since_ms = 0;
    work_arrived_();
}

void JobBoard::tick() {
    // Who can recompute in the lab's stead has come or gone: what waits for that is looked at again.
    const bool trusted_changed =
        std::exchange(trusted_present_, presence_.trusted_machine()) != presence_.trusted_machine();
    for (auto& [id, job] : jobs_) {
        if (is_over(job.record.state)) continue;
        if (trusted_changed && job.record.choice.resolved == Policy::recompute) evaluate_all(job);
        check_inputs(job);
        fall_back_to_recompute(job);
        unstick(job);
    }
}

}  // namespace goblin::lab
