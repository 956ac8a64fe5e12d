// ReplicaDraw: who computes a task's further replicas is drawn by the lab among all volunteers at hand, the
// moment the replica is missing. Neither asking often, nor taking many tasks at a job's start, nor claiming
// blobs brings conspirators together.
//
// With equal chances, a group of k among n volunteers meets a friend in (k − 1)/(n − 1) of the tasks that it
// begins, however fast it is. How many it begins is bounded by what the others began: see may_begin().
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "labcli/schedule/assignment_book.hpp"
#include "labcli/schedule/contributors.hpp"
#include "labcli/schedule/environment.hpp"
#include "labcli/schedule/job.hpp"

namespace goblin::lab {

class ReplicaDraw {
  public:
    using Eligible = std::function<bool(const LiveComputer&, const Job&, const OpenTask&)>;

    ReplicaDraw(const Environment& environment, Contributors& contributors, const AssignmentBook& book,
                Eligible eligible)
        : environment_(environment),
          contributors_(contributors),
          book_(book),
          eligible_(std::move(eligible)) {}

    // To be called before tasks are granted to somebody: who is at hand is looked at anew, where it matters.
    void look_around() { gathered_ = false; }
    // Draws for every task that waits for it, and again for those whose volunteer has gone or is too late.
    void draw(Job& job);
    // Whether a volunteer may begin another task: few of its own wait for a further replica, measured by what
    // the others began. So a burst doesn't get ahead of those who compute.
    bool may_begin(const Job& job, VolunteerId volunteer, uint64_t quota);

  private:
    // A volunteer at hand. The slower than most are drawn less often; nobody is drawn more often for being
    // fast, because a liar needs no time.
    struct Candidate {
        VolunteerId volunteer = 0;
        std::vector<const LiveComputer*> computers;
        uint64_t speed_flops = 0;
        uint64_t weight_up_to = 0;  // summed over all before it and it
    };
    const std::vector<Candidate>& candidates();
    void weigh();
    bool at_hand(const LiveComputer& computer) const;
    // How many tasks most of those at hand began at least.
    uint64_t usually_begun(const Job& job);
    void draw_again_for_those_gone(Job& job);
    const LiveComputer* able(const Candidate& candidate, const Job& job, const OpenTask& task) const;
    const LiveComputer* draw_able(const Job& job, const OpenTask& task) const;
    const LiveComputer* draw_one(const Job& job, const OpenTask& task) const;
    // Came by another invitation than those who hold the task: who came by one may know each other.
    bool is_preferred(VolunteerId volunteer, const OpenTask& task) const;

    const Environment& environment_;
    Contributors& contributors_;
    const AssignmentBook& book_;
    Eligible eligible_;
    bool gathered_ = false;
    std::vector<Candidate> candidates_;
    std::unordered_map<VolunteerId, size_t> places_;     // in candidates_
    std::unordered_map<JobId, uint64_t> usually_begun_;  // of jobs where it was asked for
};

}  // namespace goblin::lab
