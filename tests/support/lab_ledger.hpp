// What a lab's database says about its work, read past the lab node: nothing may be lost there or counted
// twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace goblin::test {

class LabLedger {
  public:
    // Of a lab whose node is stopped, killed or running: only reads.
    explicit LabLedger(std::filesystem::path lab_directory) : directory_(std::move(lab_directory)) {}

    uint64_t accepted(uint64_t job) const;
    // Assignments of the job in that state, by its name in labcli/records/records.hpp.
    uint64_t assignments(uint64_t job, const std::string& state) const;
    uint64_t agreed_altogether() const;
    // Summed over all volunteers.
    uint64_t credited_results() const;
    uint64_t credited_flops() const;
    uint64_t disagreements() const;

    // Empty when the job's books balance: all of its tasks are accepted once, each by `replicas` agreed
    // assignments (of as many volunteers), and no assignment is open any more. Else what doesn't.
    std::string imbalance_of(uint64_t job, uint64_t tasks, uint64_t replicas) const;

  private:
    uint64_t number(const std::string& query) const;

    std::filesystem::path directory_;
};

}  // namespace goblin::test
