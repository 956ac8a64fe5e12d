// JobBoard: the jobs of the lab from submission to their end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "labcli/schedule/assignment_book.hpp"
#include "labcli/schedule/job.hpp"
#include "labcli/schedule/judge.hpp"
#include "labcli/schedule/presence.hpp"

namespace goblin::lab {

class JobBoard {
  public:
    // `work_arrived` is called when tasks became ready or computers have news.
    JobBoard(const Environment& environment, Contributors& contributors, AssignmentBook& book,
             Journal& journal, Workshop& workshop, std::function<void()> work_arrived);

    Judge& judge() { return judge_; }
    std::map<JobId, Job>& jobs() { return jobs_; }
    Job* find(JobId id);
    // Null when it is over.
    Job* find_unfinished(JobId id);

    // What is known of a job from before a restart.
    struct Past {
        std::vector<TaskNumber> accepted;
        std::vector<Assignment> open;
        std::unordered_map<VolunteerId, uint64_t> agreed_results;
    };
    // Takes over a job, new or from before a restart.
    void add(JobRecord record, std::shared_ptr<Plan> plan, Past past);
    // One that was over before the lab node started.
    void add_ended(JobRecord record);
    // One from before a restart that can't be opened any more: it fails, and what of it is open is cancelled.
    void add_broken(JobRecord record, PlanSummary summary, Past past, std::string reason);
    // Whether open assignments of some job are still being taken up: until then nobody's results can be
    // judged.
    bool restoring() const { return restoring_ > 0; }
    void end(Job& job, JobState state, std::string reason);
    void forget(JobId id);  // one that is over

    // Keeps enough tasks prepared.
    void prepare(Job& job);
    // Chooses what `auto` means, before the first task is handed out.
    void settle_policy(Job& job);
    // A task was handed out: the job's turn has come.
    void begin(Job& job);
    // Why the job isn't done yet, in one sentence for people.
    std::string reason_of(Job& job);
    // Whether it gets on: how long one waits that doesn't, nobody knows.
    bool is_computed(Job& job) { return reason_of(job) == computing; }
    JobId next_id() { return ++last_id_; }
    // Numbers up to this one were given, also to jobs deleted since.
    void start_after(JobId last) { last_id_ = std::max(last_id_, last); }
    Presence& presence() { return presence_; }
    // Several times a second: jobs whose operands changed, that lack volunteers or are stuck.
    void tick();

    // So much memory is needed for others' numbers: those that have arrived and wait for somebody else give
    // way, if that makes enough room. Their owners still have them.
    void make_room(uint64_t size_bytes);
    void hold_back(std::string reason) { held_back_ = std::move(reason); }
    const std::string& held_back() const { return held_back_; }

  private:
    static constexpr const char* computing = "computing";

    void take_prepared(JobId id, const PrepareAnswer& answer);
    void restore_assignments(Job& job, std::vector<Assignment> open);
    void cancel_stored(std::vector<Assignment> open, const std::string& reason);
    std::string why_nobody_computes();
    std::string why_too_little_memory(const Job& job);
    std::string whose_turn_it_is(const Job& job);
    void check_inputs(Job& job);
    void finish_if_complete(Job& job);
    void fall_back_to_recompute(Job& job);
    void unstick(Job& job);
    void evaluate_all(Job& job);

    const Environment& environment_;
    Contributors& contributors_;
    AssignmentBook& book_;
    Journal& journal_;
    Workshop& workshop_;
    std::function<void()> work_arrived_;
    std::map<JobId, Job> jobs_;
    std::string held_back_;
    uint64_t restoring_ = 0;
    bool trusted_present_ = false;
    Presence presence_;
    JobId last_id_ = 0;
    Judge judge_;
};

}  // namespace goblin::lab
