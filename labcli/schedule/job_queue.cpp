// Queues of one job's tasks.
#include "labcli/schedule/job_queue.hpp"

#include <algorithm>
#include <cassert>

namespace goblin::lab {

namespace {

// How far into the queue of fresh tasks one looks for a task whose inputs the computer holds already.
constexpr size_t locality_reach = 32;

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
    const bool untouched = task.claims.empty() && !task.given_up;
    const Queue wanted = missing == 0 ? Queue::none : untouched ? Queue::fresh : Queue::window;
    if (wanted == task.queue) return;
    if (task.queue == Queue::fresh) fresh_.erase(std::find(fresh_.begin(), fresh_.end(), number));
    if (task.queue == Queue::window) leave_window(task);
    // Tasks that come back were early in the range: they go first, so that the job's end doesn't wait for
    // them.
    if (wanted == Queue::fresh) {
        if (task.holders.empty())
            fresh_.push_back(number);
        else
            fresh_.push_front(number);
    }
    if (wanted == Queue::window) enter_window(task);
    task.queue = wanted;
}

void JobQueue::enter_window(OpenTask& task) {
    ++window_;
    ++waiting_[task.begun_by];
    task.drawn = 0;
    undrawn_.push_back(task.prepared.number);
}

void JobQueue::leave_window(OpenTask& task) {
    --window_;
    const auto count = waiting_.find(task.begun_by);
    if (--count->second == 0) waiting_.erase(count);
    if (task.drawn != 0)
        leave_drawn(task);
    else
        std::erase(undrawn_, task.prepared.number);
    task.drawn = 0;
}

void JobQueue::leave_drawn(const OpenTask& task) {
    const auto list = drawn_.find(task.drawn);
    list->second.erase(std::find(list->second.begin(), list->second.end(), task.prepared.number));
    if (list->second.empty()) drawn_.erase(list);
}

void JobQueue::draw(TaskNumber number, VolunteerId volunteer, uint64_t until_ms) {
    OpenTask& task = open_.at(number);
    assert(volunteer != 0 && task.queue == OpenTask::Queue::window && task.drawn == 0);
    std::erase(undrawn_, number);
    task.drawn = volunteer;
    task.drawn_until_ms = until_ms;
    drawn_[volunteer].push_back(number);
}

void JobQueue::draw_again(TaskNumber number) {
    OpenTask& task = open_.at(number);
    assert(task.drawn != 0);
    leave_drawn(task);
    task.drawn = 0;
    undrawn_.push_back(number);
}

void JobQueue::begin(OpenTask& task, VolunteerId volunteer) {
    assert(task.queue == OpenTask::Queue::none);
    task.begun_by = volunteer;
    ++begun_[volunteer];
}

std::optional<TaskNumber> JobQueue::take_fresh(const Eligible& eligible, const Locality& locality) {
    std::optional<size_t> best;
    uint64_t best_locality = 0;
    for (size_t i = 0; i < fresh_.size() && (i < locality_reach || !best); ++i) {
        const OpenTask& task = open_.at(fresh_[i]);
        if (!eligible(task)) continue;
        const uint64_t held = locality(task);
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

std::optional<TaskNumber> JobQueue::take_drawn(VolunteerId volunteer, const Eligible& eligible) {
    const auto list = drawn_.find(volunteer);
    if (list == drawn_.end()) return std::nullopt;
    for (const TaskNumber number : list->second) {
        OpenTask& task = open_.at(number);
        if (!eligible(task)) continue;
        leave_window(task);
        task.queue = OpenTask::Queue::none;
        return number;
    }
    return std::nullopt;
}

void JobQueue::accept(TaskNumber number) {
    assert(!accepted_.at(number));
    queue(number, 0);
    open_.erase(number);
    accepted_[number] = true;
    ++accepted_count_;
}

void JobQueue::close() {
    // clear() would keep a table, and so some tens of KiB of each job for ever.
    decltype(open_)().swap(open_);
    decltype(fresh_)().swap(fresh_);
    window_ = 0;
    decltype(undrawn_)().swap(undrawn_);
    decltype(drawn_)().swap(drawn_);
    decltype(waiting_)().swap(waiting_);
    decltype(begun_)().swap(begun_);
    decltype(accepted_)().swap(accepted_);
    frontier_ = tasks_;
}

}  // namespace goblin::lab
