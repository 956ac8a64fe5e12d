// Dispatcher: chooses which tasks a computer gets.
#pragma once

#include <optional>

#include "labcli/schedule/job_board.hpp"
#include "labcli/schedule/replica_draw.hpp"

namespace goblin::lab {

struct DispatchRules {
    bool spread_over_networks = true;  // replicas of a task never in one network
};

class Dispatcher {
  public:
    Dispatcher(DispatchRules rules, const Environment& environment, Contributors& contributors,
               AssignmentBook& book, JobBoard& board)
        : rules_(rules),
          environment_(environment),
          contributors_(contributors),
          book_(book),
          board_(board),
          draw_(environment, contributors, book,
                [this](const LiveComputer& computer, const Job& job, const OpenTask& task) {
                    return eligible(computer, job, task);
                }) {}
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // Adds what the computer may have now to `tasks`, oldest job first.
    void grant(LiveComputer& computer, std::vector<Grant>& tasks);
    // Assignments that the computer doesn't know of, though they are its own: their grants were lost with a
    // reply.
    void grant_again(const LiveComputer& computer, const std::vector<AssignmentId>& holding,
                     std::vector<Grant>& tasks);
    // Whether there may be something for computers that wait.
    bool has_work() const;

  private:
    bool eligible(const LiveComputer& computer, const Job& job, const OpenTask& task);
    std::optional<TaskNumber> choose(const LiveComputer& computer, Job& job, uint64_t quota);
    bool grant_one(LiveComputer& computer, Job& job, uint64_t quota, std::vector<Grant>& tasks);
    Grant grant_of(const Assignment& assignment, const PreparedTask& task) const;

    DispatchRules rules_;
    const Environment& environment_;
    Contributors& contributors_;
    AssignmentBook& book_;
    JobBoard& board_;
    ReplicaDraw draw_;
};

}  // namespace goblin::lab
