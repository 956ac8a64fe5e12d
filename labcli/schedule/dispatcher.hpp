// Dispatcher: chooses which tasks a computer gets.
#pragma once

#include "labcli/schedule/job_board.hpp"

namespace goblin::lab {

struct DispatchRules {
    bool spread_over_networks = true;  // replicas of a task never in one network
};

class Dispatcher {
  public:
    Dispatcher(DispatchRules rules, const Environment& environment, Contributors& contributors,
               AssignmentBook& book, JobBoard& board)
        : rules_(rules), environment_(environment), contributors_(contributors), book_(book), board_(board) {}

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
    bool grant_one(LiveComputer& computer, Job& job, std::vector<Grant>& tasks);
    Grant grant_of(const Assignment& assignment, const PreparedTask& task) const;

    DispatchRules rules_;
    const Environment& environment_;
    Contributors& contributors_;
    AssignmentBook& book_;
    JobBoard& board_;
};

}  // namespace goblin::lab
