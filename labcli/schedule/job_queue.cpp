// Queues of one job's tasks.
#include "labcli/schedule/job_queue.hpp"

#include <algorithm>
#include <cassert>

namespace goblin::lab {

namespace {

// How far into the queue of fresh tasks one looks for a task whose inputs the computer holds already.
constexpr size_t locality_reach = 32;
// How many draws are made from a large window before it is walked.
constexpr size_t window_draws = 8;

}  // namespace

JobQueue::JobQueue(uint64_t tasks, const std::vector<TaskNumber>& accepted)
    : tasks_(tasks), accepted_(tasks, false) {
    for (const TaskNumber task : accepted) {
        assert(task < tasks_);
        if (!accepted_[task]) ++accepted_count_;
        accepted_[task] = true;
    }
}

std::vector<TaskNumber> JobQueue::take_numbers(uint64_t most) {
    std::vector<TaskNumber> numbers;
    for (; frontier_ < tasks_ && numbers.size() < most; ++frontier_)
        if (!accepted_[frontier_] && !open_.contains(frontier_)) numbers.push_back(frontier_);
    return numbers;
}

void JobQueue::add_prepared(PreparedTask task) {
    const TaskNumber number = task.number;
    reopen(std::move(task));
    queue(number, 1);
}

OpenTask& JobQueue::reopen(PreparedTask task) {
    assert(task.number < tasks_ && !accepted_[task.number]);
    const TaskNumber number = task.number;
    const auto [entry, added] = open_.try_emplace(number);
    assert(added);
    (void)added;
    entry->second.prepared = std::move(task);
    return entry->second;
}

OpenTask* JobQueue::find(TaskNumber task) {
    const auto found = open_.find(task);
    return found == open_.end() ? nullptr : &found->second;
}

void JobQueue::queue(TaskNumber number, uint64_t missing) {
    OpenTask& task = open_.at(number);
    using Queue = OpenTask::Queue;
    const Queue wanted = missing == 0 ? Queue::none : task.claims.empty() ? Queue::fresh : Queue::window;
    if (wanted == task.queue) return;
    if (task.queue == Queue::fresh) fresh_.erase(std::find(fresh_.begin(), fresh_.end(), number));
    if (task.queue == Queue::window) {
        auto place = std::find(window_.begin(), window_.end(), number);
        *place = window_.back();
        window_.pop_back();
    }
    // Tasks that come back were early in the range: they go first, so that the job's end doesn't wait for
    // them.
    if (wanted == Queue::fresh) {
        if (task.holders.empty())
            fresh_.push_back(number);
        else
            fresh_.push_front(number);
    }
    if (wanted == Queue::window) window_.push_back(number);
    task.queue = wanted;
}

std::optional<TaskNumber> JobQueue::take(const Wishes& wishes, size_t window_target, const Draw& draw) {
    const bool window_first = window_.size() >= window_target || fresh_.empty();
    if (window_first)
        if (const auto task = take_from_window(wishes, draw)) return task;
    if (const auto task = take_fresh(wishes)) return task;
    return window_first ? std::nullopt : take_from_window(wishes, draw);
}

std::optional<TaskNumber> JobQueue::take_fresh(const Wishes& wishes) {
    std::optional<size_t> best;
    uint64_t best_locality = 0;
    for (size_t i = 0; i < fresh_.size() && (i < locality_reach || !best); ++i) {
        const OpenTask& task = open_.at(fresh_[i]);
        if (!wishes.eligible(task)) continue;
        const uint64_t held = wishes.locality(task);
        if (best && held <= best_locality) continue;
        best = i;
        best_locality = held;
    }
    if (!best) return std::nullopt;
    const TaskNumber number = fresh_[*best];
    fresh_.erase(fresh_.begin() + static_cast<ptrdiff_t>(*best));
    open_.at(number).queue = OpenTask::Queue::none;
    return number;
}

std::optional<TaskNumber> JobQueue::take_from_window(const Wishes& wishes, const Draw& draw) {
    if (window_.empty()) return std::nullopt;
    std::optional<size_t> found;
    for (size_t attempt = 0; attempt < window_draws; ++attempt) {
        const size_t place = draw(window_.size());
        const OpenTask& task = open_.at(window_[place]);
        if (!wishes.eligible(task)) continue;
        const bool preferred = wishes.preferred(task);
        if (preferred || !found) found = place;
        if (preferred) break;
    }
    const size_t start = found ? 0 : draw(window_.size());
    for (size_t i = 0; i < window_.size() && !found; ++i) {
        const size_t place = (start + i) % window_.size();
        if (wishes.eligible(open_.at(window_[place]))) found = place;
    }
    if (!found) return std::nullopt;
    const TaskNumber number = window_[*found];
    window_[*found] = window_.back();
    window_.pop_back();
    open_.at(number).queue = OpenTask::Queue::none;
    return number;
}

void JobQueue::accept(TaskNumber number) {
    assert(!accepted_.at(number));
    queue(number, 0);
    open_.erase(number);
    accepted_[number] = true;
    ++accepted_count_;
}

void JobQueue::close() {
    open_.clear();
    fresh_.clear();
    window_.clear();
    accepted_.clear();
    accepted_.shrink_to_fit();
    frontier_ = tasks_;
}

}  // namespace goblin::lab
