// AssignmentBook: the open assignments, and what the end of one changes for its computer and volunteer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "labcli/records/journal.hpp"
#include "labcli/schedule/contributors.hpp"
#include "labcli/schedule/environment.hpp"
#include "labcli/schedule/job.hpp"

namespace goblin::lab {

class AssignmentBook {
  public:
    // An assignment that is no longer open, as the store remembers it.
    using FindClosed = std::function<std::optional<Assignment>(AssignmentNumber)>;

    AssignmentBook(const Environment& environment, Contributors& contributors, Journal& journal,
                   FindClosed find_closed, AssignmentNumber next_number);

    Assignment* find(const AssignmentId& id);
    std::optional<Assignment> find_closed(const AssignmentId& id) const {
        return was_issued(id) ? find_closed_(number_of(id)) : std::nullopt;
    }
    // Whether an assignment ever had this id's number; only for such ones find_closed() costs anything.
    bool was_issued(const AssignmentId& id) const {
        const AssignmentNumber number = number_of(id);
        return number > 0 && number < next_number_;
    }
    size_t size() const { return open_.size(); }

    // How long the computer may take for this besides all that it has.
    uint64_t duration_ms(const LiveComputer& computer, const PreparedTask& task) const;
    Assignment& issue(LiveComputer& computer, const Job& job, OpenTask& task);
    // One from before a restart, with its full duration again.
    void restore(Assignment assignment, OpenTask& task);
    void commit(Assignment& assignment, std::vector<Digest> digests, uint64_t compute_us);
    void ask_to_send(Assignment& assignment);
    void take_outputs(Assignment& assignment, std::shared_ptr<const std::vector<Tensor>> outputs);
    // Gives their memory back: they are asked for again when they are needed.
    void forget_outputs(Assignment& assignment);

    // The ends: the assignment is gone from the book afterwards; its task must have dropped it.
    void agree(Assignment& assignment);
    void convict(Assignment& assignment, std::string reason);
    void fail(Assignment& assignment, std::string reason);
    // The computer gives it back: no error, but it waits before it gets others. Otherwise one could go
    // through the tasks that wait for a second replica until a friend's comes up.
    void hand_back(Assignment& assignment, std::string reason);
    // The computer committed to a result and doesn't stand by it: an error, and shown as a failure.
    void give_up(Assignment& assignment, std::string reason);
    // Through nobody's fault: lost by the worker, or not needed any more.
    void refuse(Assignment& assignment, std::string reason);
    void cancel(Assignment& assignment, std::string reason);

    // Too late: it may still be returned, but its task may go to others. False when it was late already.
    bool expire(Assignment& assignment);
    // Those whose deadline has passed, at most `most`.
    std::vector<AssignmentId> overdue(size_t most) const;

  private:
    void end(Assignment& assignment, AssignmentState state, std::string reason);
    void add_uncommitted(const Assignment& assignment);
    void remove_uncommitted(const Assignment& assignment);
    Volunteer& volunteer_of(const Assignment& assignment);

    const Environment& environment_;
    Contributors& contributors_;
    Journal& journal_;
    FindClosed find_closed_;
    AssignmentNumber next_number_;
    std::unordered_map<AssignmentId, Assignment, AssignmentIdHash> open_;
};

}  // namespace goblin::lab
