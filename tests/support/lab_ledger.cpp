// Asks the database by SQL.
#include "tests/support/lab_ledger.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "labcli/records/records.hpp"
#include "labcli/store/database.hpp"

namespace goblin::test {

namespace {

using lab::AssignmentState;

AssignmentState state_of_name(const std::string& name) {
    for (int value = 0; value < 16; ++value)
        if (const auto state = static_cast<AssignmentState>(value); lab::name_of(state) == name) return state;
    throw std::invalid_argument("no state of an assignment: " + name);
}

}  // namespace

uint64_t LabLedger::number(const std::string& query) const {
    lab::Database database(directory_ / "lab.sqlite");
    lab::Statement statement = database.statement(query.c_str());
    return statement.step() ? statement.natural(0) : 0;
}

uint64_t LabLedger::accepted(uint64_t job) const {
    return number(fmt::format("SELECT count(*) FROM accepted WHERE job={}", job));
}

uint64_t LabLedger::assignments(uint64_t job, const std::string& state) const {
    return number(fmt::format("SELECT count(*) FROM assignment WHERE job={} AND state={}", job,
                              static_cast<int>(state_of_name(state))));
}

uint64_t LabLedger::agreed_altogether() const {
    return number(fmt::format("SELECT count(*) FROM assignment WHERE state={}",
                              static_cast<int>(AssignmentState::agreed)));
}

uint64_t LabLedger::credited_results() const {
    return number("SELECT sum(agreed) FROM volunteer");
}
uint64_t LabLedger::credited_flops() const {
    return number("SELECT sum(credit_flops) FROM volunteer");
}
uint64_t LabLedger::disagreements() const {
    return number("SELECT sum(disagreed) FROM volunteer");
}

std::string LabLedger::imbalance_of(uint64_t job, uint64_t tasks, uint64_t replicas) const {
    const auto agreed = static_cast<int>(AssignmentState::agreed);
    const uint64_t open = assignments(job, "issued") + assignments(job, "committed") +
                          assignments(job, "returned") + assignments(job, "expired");
    const uint64_t right = number(
        fmt::format("SELECT count(*) FROM (SELECT task FROM assignment a JOIN computer c ON c.id=a.computer "
                    "WHERE a.job={} "
                    "AND a.state={} GROUP BY task HAVING count(*)={} AND count(DISTINCT c.volunteer)={})",
                    job, agreed, replicas, replicas));
    const uint64_t taken = accepted(job);
    if (taken == tasks && right == tasks && open == 0 && assignments(job, "agreed") == tasks * replicas)
        return {};
    return fmt::format(
        "expected job {} to have {} tasks, each accepted once by {} agreed assignments, and none open; found "
        "{} "
        "accepted, {} with the right number of agreed assignments, {} agreed altogether and {} open",
        job, tasks, replicas, taken, right, assignments(job, "agreed"), open);
}

}  // namespace goblin::test
