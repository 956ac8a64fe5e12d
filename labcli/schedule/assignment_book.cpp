// Issues, follows and ends assignments.
#include "labcli/schedule/assignment_book.hpp"

#include <algorithm>
#include <cassert>

#include "core/work/identity.hpp"

namespace goblin::lab {

namespace {

// Beyond the time the work should need: other programs, a slow link, a laptop's lid for a moment.
constexpr uint64_t slack_ms = 30'000;
constexpr uint64_t patience = 4;

uint64_t transfer_ms(const PreparedTask& task) {
    return slack_ms + task.transfer_bytes * 1000 / limits::slow_link_rate;
}

}  // namespace

AssignmentBook::AssignmentBook(const Environment& environment, Contributors& contributors, Journal& journal,
                               FindClosed find_closed, AssignmentNumber next_number)
    : environment_(environment),
      contributors_(contributors),
      journal_(journal),
      find_closed_(std::move(find_closed)),
      next_number_(next_number) {}

Assignment* AssignmentBook::find(const AssignmentId& id) {
    const auto found = open_.find(id);
    return found == open_.end() ? nullptr : &found->second;
}

Volunteer& AssignmentBook::volunteer_of(const Assignment& assignment) {
    return contributors_.volunteer(assignment.volunteer);
}

uint64_t AssignmentBook::duration_ms(const LiveComputer& computer, const PreparedTask& task) const {
    const double ahead_flops =
        static_cast<double>(computer.uncommitted_flops) + static_cast<double>(task.flops);
    const double compute_ms = ahead_flops * 1000 / static_cast<double>(computer.speed_flops());
    // However slow a computer says or seems to be, it keeps nothing from others for longer than the longest
    // task.
    constexpr auto longest_ms = static_cast<double>(limits::task_longest_ms);
    return patience * static_cast<uint64_t>(std::min(compute_ms, longest_ms)) + transfer_ms(task);
}

Assignment& AssignmentBook::issue(LiveComputer& computer, const Job& job, OpenTask& task) {
    Assignment assignment;
    assignment.number = next_number_++;
    assignment.id = make_assignment_id(assignment.number);
    assignment.key = random_bytes<SecretKey>();
    assignment.job = job.record.id;
    assignment.task = task.prepared.number;
    assignment.computer = computer.record.id;
    assignment.volunteer = computer.record.volunteer;
    assignment.duration_ms = duration_ms(computer, task.prepared);
    assignment.issued_ms = environment_.now_ms();
    assignment.deadline_ms = assignment.issued_ms + assignment.duration_ms;
    assignment.flops = task.prepared.flops;
    assignment.send_ms = transfer_ms(task.prepared);
    journal_.assignment_issued(assignment);
    task.claims.push_back(assignment.id);
    task.holders.insert(assignment.volunteer);
    computer.open.insert(assignment.id);
    add_uncommitted(assignment);
    return open_.emplace(assignment.id, std::move(assignment)).first->second;
}

void AssignmentBook::add_uncommitted(const Assignment& assignment) {
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    ++computer.uncommitted;
    computer.uncommitted_flops += assignment.flops;
}

void AssignmentBook::remove_uncommitted(const Assignment& assignment) {
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    assert(computer.uncommitted > 0 && computer.uncommitted_flops >= assignment.flops);
    --computer.uncommitted;
    computer.uncommitted_flops -= assignment.flops;
}

void AssignmentBook::restore(Assignment assignment, OpenTask& task) {
    LiveComputer* const computer = contributors_.computer(assignment.computer);
    assert(computer != nullptr);
    assignment.volunteer = computer->record.volunteer;
    assignment.issued_ms = environment_.now_ms();
    assignment.flops = task.prepared.flops;
    assignment.send_ms = transfer_ms(task.prepared);
    // Numbers that had arrived were only in memory: they are asked for again.
    if (assignment.state == AssignmentState::returned) assignment.state = AssignmentState::committed;
    // Only who still has to compute can be late; see commit() and expire().
    assignment.deadline_ms = assignment.state == AssignmentState::issued
                                 ? assignment.issued_ms + assignment.duration_ms
                                 : UINT64_MAX;
    computer->open.insert(assignment.id);
    if (assignment.state == AssignmentState::issued) add_uncommitted(assignment);
    if (task.claims.empty()) task.begun_by = assignment.volunteer;
    task.claims.push_back(assignment.id);
    task.holders.insert(assignment.volunteer);
    open_.emplace(assignment.id, std::move(assignment));
}

void AssignmentBook::commit(Assignment& assignment, std::vector<Digest> digests, uint64_t compute_us) {
    assert(assignment.digests.empty());
    if (assignment.state == AssignmentState::issued) remove_uncommitted(assignment);
    assignment.state = AssignmentState::committed;
    assignment.digests = std::move(digests);
    assignment.compute_us = compute_us;
    assignment.deadline_ms = UINT64_MAX;  // the computer has done its part until it is asked to send
    journal_.assignment_changed(assignment);
}

void AssignmentBook::ask_to_send(Assignment& assignment) {
    assert(assignment.state == AssignmentState::committed);
    assignment.asked_to_send = true;
    // The result is there: others wait for nothing but its transfer.
    assignment.deadline_ms = environment_.now_ms() + assignment.send_ms;
    contributors_.computer(assignment.computer)->has_news = true;
}

void AssignmentBook::take_outputs(Assignment& assignment,
                                  std::shared_ptr<const std::vector<Tensor>> outputs) {
    assignment.state = AssignmentState::returned;
    assignment.outputs = std::move(outputs);
    assignment.deadline_ms = UINT64_MAX;
}

void AssignmentBook::forget_outputs(Assignment& assignment) {
    assert(assignment.state == AssignmentState::returned);
    assignment.state = AssignmentState::committed;  // on disk it never was anything else
    assignment.outputs.reset();
    assignment.asked_to_send = false;
    assignment.told_to_send_ms = 0;
}

void AssignmentBook::end(Assignment& assignment, AssignmentState state, std::string reason) {
    const AssignmentId id = assignment.id;
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    if (assignment.state == AssignmentState::issued) remove_uncommitted(assignment);
    assignment.state = state;
    assignment.reason = std::move(reason);
    assignment.outputs.reset();
    journal_.assignment_changed(assignment);
    computer.open.erase(id);
    computer.has_news = true;
    open_.erase(id);
}

void AssignmentBook::agree(Assignment& assignment) {
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    Volunteer& volunteer = volunteer_of(assignment);
    ++volunteer.agreed;
    volunteer.credit_flops += assignment.flops;
    computer.succeed();
    computer.decided[assignment.id] = {assignment.id, true, assignment.flops, {}};
    journal_.volunteer(volunteer);
    end(assignment, AssignmentState::agreed, {});
}

void AssignmentBook::convict(Assignment& assignment, std::string reason) {
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    Volunteer& volunteer = volunteer_of(assignment);
    ++volunteer.disagreed;
    computer.err(environment_.now_ms());
    computer.decided[assignment.id] = {assignment.id, false, 0, reason};
    journal_.volunteer(volunteer);
    end(assignment, AssignmentState::disagreed, std::move(reason));
}

void AssignmentBook::fail(Assignment& assignment, std::string reason) {
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    Volunteer& volunteer = volunteer_of(assignment);
    ++volunteer.failed;
    computer.err(environment_.now_ms());
    computer.cancelled[assignment.id] = reason;
    journal_.volunteer(volunteer);
    end(assignment, AssignmentState::failed, std::move(reason));
}

void AssignmentBook::hand_back(Assignment& assignment, std::string reason) {
    contributors_.computer(assignment.computer)->hold_off(environment_.now_ms());
    refuse(assignment, std::move(reason));
}

void AssignmentBook::give_up(Assignment& assignment, std::string reason) {
    assert(!assignment.digests.empty());
    const uint64_t now_ms = environment_.now_ms();
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    Volunteer& volunteer = volunteer_of(assignment);
    ++volunteer.failed;
    // All that a computer lost with its disk is one error.
    if (!computer.waits(now_ms)) computer.err(now_ms);
    computer.cancelled[assignment.id] = reason;
    journal_.volunteer(volunteer);
    end(assignment, AssignmentState::failed, std::move(reason));
}

void AssignmentBook::refuse(Assignment& assignment, std::string reason) {
    contributors_.computer(assignment.computer)->cancelled[assignment.id] = reason;
    end(assignment, AssignmentState::refused, std::move(reason));
}

void AssignmentBook::cancel(Assignment& assignment, std::string reason) {
    contributors_.computer(assignment.computer)->cancelled[assignment.id] = reason;
    end(assignment, AssignmentState::cancelled, std::move(reason));
}

bool AssignmentBook::expire(Assignment& assignment) {
    if (assignment.state == AssignmentState::expired) return false;
    LiveComputer& computer = *contributors_.computer(assignment.computer);
    if (assignment.state == AssignmentState::issued) remove_uncommitted(assignment);
    assignment.state = AssignmentState::expired;
    assignment.deadline_ms = UINT64_MAX;
    // A pile of tasks that a computer took with it when it vanished is one error.
    if (!computer.waits(environment_.now_ms())) computer.err(environment_.now_ms());
    journal_.assignment_changed(assignment);
    return true;
}

std::vector<AssignmentId> AssignmentBook::overdue(size_t most) const {
    std::vector<AssignmentId> ids;
    const uint64_t now_ms = environment_.now_ms();
    for (const auto& [id, assignment] : open_) {
        if (assignment.deadline_ms > now_ms) continue;
        ids.push_back(id);
        if (ids.size() == most) break;
    }
    return ids;
}

}  // namespace goblin::lab
