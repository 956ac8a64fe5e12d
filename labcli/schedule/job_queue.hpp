// JobQueue: one job's tasks from the range of numbers they start as until each is accepted.
//
// Fresh tasks have nobody working on them; the window holds those that lack further replicas. Who gets a
// second replica is drawn at random over the window, so that nobody can steer towards a friend's task by
// speed or claimed blobs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "labcli/schedule/environment.hpp"
#include "labcli/schedule/records.hpp"
#include "labcli/schedule/workshop.hpp"

namespace goblin::lab {

struct OpenTask {
    PreparedTask prepared;
    std::vector<AssignmentId> claims;  // issued, committed, returned, or expired and possibly still to return
    std::set<VolunteerId> holders;     // whoever held it never gets it again
    uint64_t failures = 0;
    bool checking = false;  // with the verifier
    enum class Queue : uint8_t { none, fresh, window } queue = Queue::none;
};

class JobQueue {
  public:
    JobQueue(uint64_t tasks, const std::vector<TaskNumber>& accepted);

    uint64_t tasks() const { return tasks_; }
    uint64_t accepted() const { return accepted_count_; }
    bool complete() const { return accepted_count_ == tasks_; }
    bool is_accepted(TaskNumber task) const { return accepted_[task]; }

    // The next numbers to prepare, at most `most`; empty when enough is prepared or none are left.
    std::vector<TaskNumber> take_numbers(uint64_t most);
    uint64_t unprepared() const { return tasks_ - frontier_; }
    void add_prepared(PreparedTask task);
    // A task that had been handed out before a restart; its claims follow.
    OpenTask& reopen(PreparedTask task);

    OpenTask* find(TaskNumber task);
    const std::unordered_map<TaskNumber, OpenTask>& open() const { return open_; }

    // (Re)queues a task that lacks `missing` replicas, or takes it out of the queues when none.
    void queue(TaskNumber task, uint64_t missing);
    size_t fresh() const { return fresh_.size(); }
    size_t window() const { return window_.size(); }

    // A task for which `eligible` holds, taken out of its queue. `window_target`: how many tasks should wait
    // in the window before one is drawn from it while fresh ones are left.
    struct Wishes {
        std::function<bool(const OpenTask&)> eligible;
        std::function<bool(const OpenTask&)> preferred;  // among a few drawn from the window
        std::function<uint64_t(const OpenTask&)>
            locality;  // among the first fresh ones: the more, the better
    };
    std::optional<TaskNumber> take(const Wishes& wishes, size_t window_target, const Draw& draw);

    void accept(TaskNumber task);
    // The job is over: gives the memory back.
    void close();

  private:
    std::optional<TaskNumber> take_fresh(const Wishes& wishes);
    std::optional<TaskNumber> take_from_window(const Wishes& wishes, const Draw& draw);

    uint64_t tasks_;
    std::vector<bool> accepted_;
    uint64_t accepted_count_ = 0;
    TaskNumber frontier_ = 0;
    std::unordered_map<TaskNumber, OpenTask> open_;
    std::deque<TaskNumber> fresh_;
    std::vector<TaskNumber> window_;
};

}  // namespace goblin::lab
