// Store: the lab's database as records: what was there at the start, and a Journal that keeps what changes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "labcli/records/journal.hpp"
#include "labcli/store/database.hpp"
#include "labcli/store/writer.hpp"

namespace goblin::lab {

// A line of a job's history.
struct HistoryLine {
    uint64_t at_ms = 0;
    std::string text;
};

class Store final : public Journal {
  public:
    // Opens or creates the database. `fatal` is called on another thread when changes can't be kept any more,
    // `waiting` on any when the database keeps the lab waiting.
    Store(const std::filesystem::path& path, std::function<void(const std::string&)> fatal,
          Database::Waiting waiting = {});
    ~Store() override;

    std::vector<Invitation> invitations();
    std::vector<Volunteer> volunteers();
    std::vector<Computer> computers();
    std::vector<JobRecord> jobs();
    std::vector<TaskNumber> accepted_tasks(JobId job);
    std::vector<Assignment> open_assignments(JobId job);
    // Verified results by volunteer.
    std::unordered_map<VolunteerId, uint64_t> agreed_results(JobId job);
    LastNumbers last_numbers();
    // An assignment by its number, for answers to late repetitions: as it ended, though that may not be on
    // disk yet.
    std::optional<Assignment> assignment(AssignmentNumber number);
    // Who got what, what came back, verdicts and reasons, oldest first; at most `most` lines, the last ones.
    std::vector<HistoryLine> history(JobId job, uint64_t most);

    // Assignments of this computer that ended in disagreement or failed, newest first.
    std::vector<HistoryLine> disagreements(ComputerId computer, uint64_t most);
    static const std::string& disagreements_query();

    // The changes of one turn are kept together.
    void end_turn();
    // Forgets what the turn at hand has changed; whether that was anything. Who waits for its commit is let
    // go without having been called.
    bool drop_turn();

    void invitation(const Invitation& invitation) override;
    void volunteer(const Volunteer& volunteer) override;
    void computer(const Computer& computer) override;
    void job(const JobRecord& job) override;
    void forget_computer(ComputerId computer) override;
    void delete_job(JobId job) override;
    void assignment_issued(const Assignment& assignment) override;
    void assignment_changed(const Assignment& assignment) override;
    void task_accepted(JobId job, TaskNumber task, std::shared_ptr<Syncable> merged) override;
    void event(JobId job, std::string text) override;
    void after_commit(std::function<void()> done) override;

  private:
    struct Turn {
        std::vector<Writer::Change> changes;
        std::vector<std::function<void()>> done;
        std::vector<std::shared_ptr<Syncable>> files;
        std::unordered_map<VolunteerId, Volunteer>
            volunteers;  // the last of several changes in a turn is enough
        std::vector<AssignmentNumber> ended;
    };

    Database read_database_;  // the scheduling thread's own connection
    Database write_database_;
    Turn turn_;
    std::mutex ending_mutex_;
    std::unordered_map<AssignmentNumber, Assignment> ending_;  // over, and not yet on disk
    Writer writer_;
};

}  // namespace goblin::lab
