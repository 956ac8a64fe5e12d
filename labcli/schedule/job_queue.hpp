// JobQueue: one job's tasks from the range of numbers they start as until each is accepted.
//
// Fresh tasks have nobody working on them; the window holds those that lack further replicas. Who is to have
// the next replica is drawn (replica_draw.hpp), and the task waits for that volunteer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "labcli/records/records.hpp"
#include "labcli/schedule/environment.hpp"
#include "labcli/schedule/workshop.hpp"

namespace goblin::lab {

struct OpenTask {
    PreparedTask prepared;
    std::vector<AssignmentId> claims;  // issued, committed, returned, or expired and possibly still to return
    std::set<VolunteerId> holders;     // whoever held it never gets it again
    VolunteerId begun_by = 0;
    VolunteerId drawn = 0;  // who is to have the next replica; 0: not drawn yet
    uint64_t drawn_until_ms = 0;
    uint64_t failures = 0;
    bool checking = false;  // with the verifier
    bool given_up =
        false;  // somebody committed to a result and didn't stand by it: nobody begins it, all are drawn
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
    size_t window() const { return window_; }

    // ---- further replicas
    // Tasks that lack a replica and wait until somebody is drawn.
    const std::vector<TaskNumber>& undrawn() const { return undrawn_; }
    // The one in the window waits for this volunteer, until so long.
    void draw(TaskNumber task, VolunteerId volunteer, uint64_t until_ms);
    // Somebody else shall be drawn.
    void draw_again(TaskNumber task);
    // By the volunteer that each waits for, longest first.
    const std::map<VolunteerId, std::deque<TaskNumber>>& drawn() const { return drawn_; }

    // What a volunteer began: its tasks that wait for a further replica, and all it ever took in this job.
    uint64_t waiting(VolunteerId volunteer) const { return value(waiting_, volunteer); }
    uint64_t begun(VolunteerId volunteer) const { return value(begun_, volunteer); }
    void begin(OpenTask& task, VolunteerId volunteer);

    // A task for which `eligible` holds, taken out of its queue.
    using Eligible = std::function<bool(const OpenTask&)>;
    // `locality`: among the first fresh ones, the more, the better.
    using Locality = std::function<uint64_t(const OpenTask&)>;
    std::optional<TaskNumber> take_fresh(const Eligible& eligible, const Locality& locality);
    std::optional<TaskNumber> take_drawn(VolunteerId volunteer, const Eligible& eligible);

    void accept(TaskNumber task);
    // The job is over: gives the memory back.
    void close();

  private:
    using Counts = std::unordered_map<VolunteerId, uint64_t>;
    static uint64_t value(const Counts& counts, VolunteerId volunteer) {
        const auto found = counts.find(volunteer);
        return found == counts.end() ? 0 : found->second;
    }
    void enter_window(OpenTask& task);
    void leave_window(OpenTask& task);
    void leave_drawn(const OpenTask& task);

    uint64_t tasks_;
    std::vector<bool> accepted_;
    uint64_t accepted_count_ = 0;
    TaskNumber frontier_ = 0;
    std::unordered_map<TaskNumber, OpenTask> open_;
    std::deque<TaskNumber> fresh_;
    size_t window_ = 0;
    std::vector<TaskNumber> undrawn_;
    std::map<VolunteerId, std::deque<TaskNumber>> drawn_;
    Counts waiting_;
    Counts begun_;
};

}  // namespace goblin::lab
