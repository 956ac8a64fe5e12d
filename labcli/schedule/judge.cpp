// Quorums, referees' findings and acceptance.
#include "labcli/schedule/judge.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace goblin::lab {

namespace {

// A task that so many contributors report as failing is computed by the lab itself, which settles it.
constexpr uint64_t failures_before_lab_computes = 3;

}  // namespace

Judge::Judge(const Environment& environment, Contributors& contributors, AssignmentBook& book,
             Journal& journal, Workshop& workshop, FindJob find_job, TrustedPresent trusted_present,
             Changed changed, Broken broken)
    : environment_(environment),
      contributors_(contributors),
      book_(book),
      journal_(journal),
      workshop_(workshop),
      find_job_(std::move(find_job)),
      trusted_present_(std::move(trusted_present)),
      changed_(std::move(changed)),
      broken_(std::move(broken)) {}

bool Judge::is_trusted(const AssignmentId& id) {
    return contributors_.volunteer(book_.find(id)->volunteer).trusted;
}

// Where a trusted machine is at hand, it recomputes what others computed, so that the lab need not.
uint64_t Judge::quorum_of(const Job& job, const OpenTask& task) {
    if (job.record.choice.resolved != Policy::recompute || !trusted_present_()) return job.replicas();
    const bool strangers =
        std::any_of(task.claims.begin(), task.claims.end(), [this](const AssignmentId& id) {
            return book_.find(id)->state != AssignmentState::expired && !is_trusted(id);
        });
    return strangers ? 2 : 1;
}

Judge::Tally Judge::count(const OpenTask& task) {
    Tally tally;
    for (const AssignmentId& id : task.claims) {
        const Assignment& claim = *book_.find(id);
        const bool committed = claim.state == AssignmentState::committed;
        const bool returned = claim.state == AssignmentState::returned;
        tally.live += claim.state == AssignmentState::issued || committed || returned;
        tally.claiming += committed || returned;
        tally.returned += returned;
        tally.asked += committed && claim.asked_to_send;
    }
    return tally;
}

void Judge::evaluate(Job& job, TaskNumber number) {
    OpenTask* const task = job.queue.find(number);
    if (task == nullptr || task->checking || is_over(job.record.state)) return;
    if (task->failures >= failures_before_lab_computes) {
        compute_here(job, *task);
        return;
    }
    const uint64_t quorum = quorum_of(job, *task);
    const Tally tally = count(*task);
    job.queue.queue(number, tally.live < quorum ? quorum - tally.live : 0);
    if (tally.claiming < quorum || tally.asked > 0) return;
    if (tally.returned == 0)
        draw_sender(*task);
    else
        request_check(job, *task);
}

void Judge::draw_sender(const OpenTask& task) {
    std::vector<AssignmentId> committed;
    for (const AssignmentId& id : task.claims)
        if (book_.find(id)->state == AssignmentState::committed) committed.push_back(id);
    book_.ask_to_send(*book_.find(committed[environment_.draw(committed.size())]));
}

void Judge::request_check(Job& job, OpenTask& task) {
    VerifyRequest request{
        job.record.id, task.prepared.number, job.plan, job.record.choice.resolved, job.replicas(), {}};
    for (const AssignmentId& id : task.claims) {
        const Assignment& claim = *book_.find(id);
        if (claim.state == AssignmentState::committed || claim.state == AssignmentState::returned)
            request.claims.push_back({claim.id, claim.key, claim.digests, is_trusted(id), claim.outputs});
    }
    task.checking = true;
    gathered_.push_back(std::move(request));
}

void Judge::look() {
    if (gathered_.empty()) return;
    workshop_.verify(std::exchange(gathered_, {}), [this](std::vector<VerifyAnswer> answers) {
        for (const VerifyAnswer& answer : answers) take_answer(answer);
        look();
    });
}

void Judge::take_answer(const VerifyAnswer& answer) {
    Job* const job = find_job_(answer.job);
    if (job == nullptr) return;
    OpenTask* const task = job->queue.find(answer.task);
    if (task == nullptr) return;
    assert(task->checking);
    task->checking = false;
    if (!answer.error.empty()) {
        broken_(*job, answer.error);
        return;
    }
    const bool dispute =
        std::any_of(answer.findings.begin(), answer.findings.end(), [](const ClaimFinding& finding) {
            return finding.finding == Finding::must_send || finding.finding == Finding::convicted;
        });
    keep_tally(*job, answer, dispute);
    take_findings(*task, answer);
    if (answer.accepted)
        accept(*job, *task);
    else
        evaluate(*job, answer.task);
    changed_(*job);
}

void Judge::keep_tally(Job& job, const VerifyAnswer& answer, bool dispute) {
    VerificationTally& tally = job.record.tally;
    const VerificationTally before = tally;
    tally.rows_checked += answer.rows_checked;
    tally.rows_recomputed += answer.rows_recomputed;
    tally.delta = std::max(tally.delta, answer.delta);
    tally.disputes += dispute;
    if (tally != before) journal_.job(job.record);
}

void Judge::take_findings(OpenTask& task, const VerifyAnswer& answer) {
    for (const ClaimFinding& finding : answer.findings) {
        Assignment* const claim = book_.find(finding.assignment);
        if (claim == nullptr) continue;  // its computer was banned meanwhile
        switch (finding.finding) {
            case Finding::undecided:
                break;
            case Finding::must_send:
                if (claim->state == AssignmentState::committed && !claim->asked_to_send)
                    book_.ask_to_send(*claim);
                break;
            case Finding::agreed:
            case Finding::convicted:
                std::erase(task.claims, finding.assignment);
                if (finding.finding == Finding::agreed) {
                    if (Job* const job = find_job_(answer.job)) ++job->agreed_results[claim->volunteer];
                    book_.agree(*claim);
                } else {
                    journal_.event(answer.job, fmt::format("task {}: computer {} convicted: {}", answer.task,
                                                           claim->computer, finding.reason));
                    book_.convict(*claim, finding.reason);
                }
                break;
        }
    }
}

void Judge::accept(Job& job, OpenTask& task) {
    const TaskNumber number = task.prepared.number;
    for (const AssignmentId& id : task.claims)
        book_.cancel(*book_.find(id), "the task is done: others were faster");
    task.claims.clear();
    journal_.task_accepted(job.record.id, number, job.plan);
    job.queue.accept(number);
}

void Judge::compute_here(Job& job, OpenTask& task) {
    const TaskNumber number = task.prepared.number;
    task.checking = true;
    job.queue.queue(number, 0);
    journal_.event(job.record.id, fmt::format("task {}: {} contributors failed, the lab computes it itself",
                                              number, task.failures));
    workshop_.compute(job.plan, job.record.id, number, [this](const VerifyAnswer& answer) {
        if (Job* const found = find_job_(answer.job); found != nullptr && answer.error.empty())
            ++found->record.tally.computed_by_lab;
        take_answer(answer);
    });
}

}  // namespace goblin::lab
