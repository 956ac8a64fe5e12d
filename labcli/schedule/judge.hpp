// Judge: decides for each open task what is missing until its result can be used, and acts on what the
// verifier finds.
//
// A quorum first commits. Only then is it drawn who sends the numbers, so that nobody knows when they are
// looked at. Disagreement goes to the referee in the verifier, never to a vote.
#pragma once

#include <functional>
#include <vector>

#include "labcli/schedule/assignment_book.hpp"
#include "labcli/schedule/environment.hpp"
#include "labcli/schedule/job.hpp"
#include "labcli/schedule/workshop.hpp"

namespace goblin::lab {

class Judge {
  public:
    // Finds a running job; null when it is over.
    using FindJob = std::function<Job*(JobId)>;
    // Called after verdicts changed something: a job may be complete, computers have news.
    using Changed = std::function<void(Job&)>;
    // Called when the lab itself could not do its part: the job fails for that reason.
    using Broken = std::function<void(Job&, const std::string& reason)>;

    // Whether a trusted machine is at hand, which can recompute in the lab's stead.
    using TrustedPresent = std::function<bool()>;

    Judge(const Environment& environment, Contributors& contributors, AssignmentBook& book, Journal& journal,
          Workshop& workshop, FindJob find_job, TrustedPresent trusted_present, Changed changed,
          Broken broken);

    // To be called whenever something about the task changed. Requests for the verifier are gathered until
    // look().
    void evaluate(Job& job, TaskNumber number);
    // Sends what was gathered to the verifier.
    void look();
    // Whether nothing can be decided before somebody else sends numbers that were asked for.
    bool waits_for_numbers(const OpenTask& task) { return !task.checking && count(task).asked > 0; }
    // Whether the next replica of a task must come from a trusted machine.
    bool wants_trusted(const Job& job, const OpenTask& task) {
        return !task.claims.empty() && quorum_of(job, task) > job.replicas();
    }

  private:
    struct Tally {
        uint64_t live = 0;      // issued in time, committed or returned
        uint64_t claiming = 0;  // committed or returned
        uint64_t returned = 0;
        uint64_t asked = 0;  // asked to send, not yet returned
    };
    uint64_t quorum_of(const Job& job, const OpenTask& task);
    bool is_trusted(const AssignmentId& id);
    Tally count(const OpenTask& task);
    void draw_sender(const OpenTask& task);
    void request_check(Job& job, OpenTask& task);
    void take_answer(const VerifyAnswer& answer);
    void keep_tally(Job& job, const VerifyAnswer& answer, bool dispute);
    void take_findings(OpenTask& task, const VerifyAnswer& answer);
    void accept(Job& job, OpenTask& task);
    void compute_here(Job& job, OpenTask& task);

    const Environment& environment_;
    Contributors& contributors_;
    AssignmentBook& book_;
    Journal& journal_;
    Workshop& workshop_;
    FindJob find_job_;
    TrustedPresent trusted_present_;
    Changed changed_;
    Broken broken_;
    std::vector<VerifyRequest> gathered_;
};

}  // namespace goblin::lab
