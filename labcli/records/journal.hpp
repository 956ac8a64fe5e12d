// Journal: where the scheduler's changes go to be kept. Changes made in one turn are kept together or not at
// all.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "labcli/records/records.hpp"
#include "labcli/records/syncable.hpp"

namespace goblin::lab {

class Journal {
  public:
    virtual ~Journal() = default;
    // Inserts or replaces.
    virtual void invitation(const Invitation& invitation) = 0;
    virtual void volunteer(const Volunteer& volunteer) = 0;
    virtual void computer(const Computer& computer) = 0;
    virtual void job(const JobRecord& job) = 0;
    virtual void forget_computer(ComputerId computer) = 0;
    virtual void delete_job(JobId job) = 0;
    virtual void assignment_issued(const Assignment& assignment) = 0;
    virtual void assignment_changed(const Assignment& assignment) = 0;
    // `merged` is synced before the record is kept.
    virtual void task_accepted(JobId job, TaskNumber task, std::shared_ptr<Syncable> merged) = 0;
    virtual void event(JobId job, std::string text) = 0;
    // Called, on any thread, once everything before is kept.
    virtual void after_commit(std::function<void()> done) = 0;
};

}  // namespace goblin::lab
