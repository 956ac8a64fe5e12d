// Takes results, tells news, grants tasks.
#include "labcli/schedule/exchange_desk.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/error.hpp"
#include "core/work/plain_text.hpp"

namespace goblin::lab {

namespace {

constexpr size_t most_earlier_sessions = 16;
constexpr size_t most_expired_at_once = 1024;
constexpr uint64_t idle_wait_ms = 1'000;
// What a contributor was told to send it is told again after so long, should the reply have been lost.
// Before, it is no reason to answer: an upload takes its time, and the contributor would ask again at once.
constexpr uint64_t tell_again_ms = 5'000;

Receipt refused(const Result& result, std::string reason) {
    return {result.assignment, ReceiptKind::refused, std::move(reason)};
}

}  // namespace

std::optional<Refusal> ExchangeDesk::take_session(LiveComputer& computer, const ExchangeRequest& request) {
    if (computer.session == request.session) return std::nullopt;
    auto& earlier = computer.earlier_sessions;
    if (std::find(earlier.begin(), earlier.end(), request.session) != earlier.end())
        return Refusal{409,
                       {"copied",
                        "expected one computer with this identity, found two: the worker's directory was "
                        "copied, and the copy that was started later works on. Stop one of them; for both to "
                        "work, give this one a fresh directory (--dir) and a new invitation link (--join)"},
                       0};
    if (computer.session != FixedBytes<16>{}) earlier.push_back(computer.session);
    if (earlier.size() > most_earlier_sessions) earlier.erase(earlier.begin());
    computer.session = request.session;
    computer.blobs.clear();
    return std::nullopt;
}

void ExchangeDesk::drop_lost(LiveComputer& computer, const std::vector<AssignmentId>& holding,
                             bool started_again) {
    std::vector<AssignmentId> lost;
    for (const AssignmentId& id : computer.open) {
        const Assignment& assignment = *book_.find(id);
        const bool committed = !assignment.digests.empty() && assignment.state != AssignmentState::returned;
        const bool late = assignment.digests.empty() && assignment.state == AssignmentState::expired;
        if (!late && !(committed && started_again)) continue;
        if (std::find(holding.begin(), holding.end(), id) == holding.end()) lost.push_back(id);
    }
    for (const AssignmentId& id : lost) {
        Assignment& assignment = *book_.find(id);
        const JobId job_id = assignment.job;
        const TaskNumber task = assignment.task;
        if (assignment.digests.empty()) {
            drop_claim(assignment);
            book_.refuse(assignment, "the worker no longer has it");
        } else {
            give_up(assignment, "the worker no longer has it");
        }
        evaluate(job_id, task);
    }
}

void ExchangeDesk::take_offer(LiveComputer& computer, const Peer& peer, const ExchangeRequest& request) {
    computer.peer = peer;
    computer.network = network_of(peer);
    computer.last_seen_ms = environment_.now_ms();
    computer.state = printable_name(request.state);
    computer.devices = request.want.devices;
    computer.wanted_tasks = request.want.tasks;
    computer.wanted_work_ms = request.want.work_ms;
    for (const Digest& digest : request.want.blobs_removed) computer.blobs.erase(digest);
    for (const Digest& digest : request.want.blobs_added)
        if (computer.blobs.size() < limits::held_blobs) computer.blobs.insert(digest);
}

void ExchangeDesk::exchange(LiveComputer& computer, const Peer& peer, ExchangeRequest request,
                            Done<ExchangeReply> done) {
    const bool started_again = computer.session != request.session;
    if (std::optional<Refusal> refusal = take_session(computer, request)) {
        done(*std::move(refusal));
        return;
    }
    look_ups_left_ = look_ups_per_exchange;
    drop_lost(computer, request.holding, started_again);
    // One waiting exchange per computer: a newer one releases the older.
    if (computer.waiting) std::exchange(computer.waiting, std::nullopt)->done(ExchangeReply{});
    take_offer(computer, peer, request);
    ExchangeReply reply;
    take_results(computer, request.results, reply.acknowledged);
    board_.judge().look();
    const bool must_send = add_news(computer, request.holding, reply);
    dispatcher_.grant_again(computer, request.holding, reply.tasks);
    if (computer.wanted_tasks > reply.tasks.size()) dispatcher_.grant(computer, reply.tasks);
    reply.notice = contributors_.why_not(computer);
    if (reply.notice.empty()) reply.notice = board_.held_back();
    const bool something = !reply.acknowledged.empty() || !reply.tasks.empty() || must_send ||
                           !reply.decided.empty() || !reply.cancel.empty();
    if (something || request.wait_ms == 0) {
        answer(computer, std::move(reply), std::move(done));
        return;
    }
    const uint64_t longest_ms = reply.send.empty() ? limits::exchange_wait_ms : tell_again_ms;
    computer.waiting =
        WaitingExchange{environment_.now_ms() + std::min(request.wait_ms, longest_ms), std::move(done)};
}

void ExchangeDesk::answer(LiveComputer& computer, ExchangeReply reply, Done<ExchangeReply> done) {
    computer.has_news = false;
    if (reply.tasks.empty() && computer.wanted_tasks > 0) {
        const uint64_t now_ms = environment_.now_ms();
        reply.wait_ms = computer.no_tasks_before_ms > now_ms ? computer.no_tasks_before_ms - now_ms : 0;
        if (!reply.notice.empty()) reply.wait_ms = std::max(reply.wait_ms, idle_wait_ms);
    }
    journal_.after_commit([reply = std::make_shared<ExchangeReply>(std::move(reply)),
                           done = std::move(done)] { done(std::move(*reply)); });
}

void ExchangeDesk::take_results(LiveComputer& computer, std::vector<Result>& results,
                                std::vector<Receipt>& receipts) {
    uint64_t committed_flops = 0;
    uint64_t issued_ms = UINT64_MAX;
    for (Result& result : results) {
        if (const Assignment* const assignment = book_.find(result.assignment);
            assignment != nullptr && result.kind == ResultKind::committed &&
            assignment->computer == computer.record.id && assignment->digests.empty()) {
            committed_flops += assignment->flops;
            issued_ms = std::min(issued_ms, assignment->issued_ms);
        }
        if (std::optional<Receipt> receipt = take_result(computer, result))
            receipts.push_back(*std::move(receipt));
    }
    if (committed_flops > 0) computer.measure(committed_flops, issued_ms, environment_.now_ms());
}

std::optional<Receipt> ExchangeDesk::take_result(LiveComputer& computer, Result& result) {
    Assignment* const assignment = book_.find(result.assignment);
    if (assignment == nullptr) {
        if (!may_look_up(result.assignment)) return std::nullopt;
        return receipt_for_closed(computer, result);
    }
    if (assignment->computer != computer.record.id)
        return refused(result, "expected an assignment of this computer, found none of that id");
    Receipt receipt;
    const JobId job_id = assignment->job;
    const TaskNumber task = assignment->task;
    switch (result.kind) {
        case ResultKind::committed:
            receipt = take_commitment(*assignment, result);
            break;
        case ResultKind::data:
            receipt = take_data(*assignment, result);
            break;
        case ResultKind::failed:
        case ResultKind::handed_back:
            receipt = take_end(*assignment, result);
            break;
    }
    evaluate(job_id, task);
    return receipt;
}

Receipt ExchangeDesk::take_commitment(Assignment& assignment, Result& result) {
    if (!assignment.digests.empty()) {
        if (assignment.digests == result.digests) return {assignment.id, ReceiptKind::repeated, {}};
        return refused(
            result,
            "expected the digest that was committed before, found another: a commitment can't be changed");
    }
    const OpenTask& task = *task_of(assignment);
    if (result.digests.size() != task.prepared.outputs.size())
        return refused(result, fmt::format("expected {} digests, found {}", task.prepared.outputs.size(),
                                           result.digests.size()));
    book_.commit(assignment, std::move(result.digests), result.compute_us);
    return {assignment.id, ReceiptKind::taken, {}};
}

Receipt ExchangeDesk::take_data(Assignment& assignment, Result& result) {
    if (assignment.state == AssignmentState::returned) return {assignment.id, ReceiptKind::repeated, {}};
    if (assignment.digests.empty())
        return refused(result, "expected a commitment before the numbers, found none");
    if (!assignment.asked_to_send) return refused(result, "expected to be asked before numbers are sent");
    const OpenTask& task = *task_of(assignment);
    auto outputs = std::make_shared<std::vector<Tensor>>();
    try {
        for (FrameMessage& message : result.outputs)
            outputs->push_back(tensor_of(frame_of(std::move(message))));
    } catch (const Error& error) {
        const std::string reason = error.what();
        give_up(assignment, reason);
        return refused(result, reason);
    }
    const bool fits = std::equal(
        outputs->begin(), outputs->end(), task.prepared.outputs.begin(), task.prepared.outputs.end(),
        [](const Tensor& found, const TensorSpec& expected) { return found.spec() == expected; });
    if (!fits) {
        const std::string reason = "expected numbers of the task's types and shapes, found others";
        give_up(assignment, reason);
        return refused(result, reason);
    }
    book_.take_outputs(assignment, std::move(outputs));
    return {result.assignment, ReceiptKind::taken, {}};
}

// A commitment binds: without a price for giving it up, who lies would never be seen, and conspirators would
// give up every task but those that they hold alone.
void ExchangeDesk::give_up(Assignment& assignment, std::string_view reason) {
    drop_claim(assignment);
    if (Job* const job = board_.find_unfinished(assignment.job)) {
        if (OpenTask* const task = job->queue.find(assignment.task)) task->given_up = true;
        journal_.event(assignment.job,
                       fmt::format("task {}: computer {} committed to a result and gave it up: {}",
                                   assignment.task, assignment.computer, reason));
    }
    book_.give_up(assignment, fmt::format("committed to a result, then gave it up: {}", reason));
}

Receipt ExchangeDesk::take_end(Assignment& assignment, Result& result) {
    const std::string reason = plain_text(result.reason);
    if (assignment.state == AssignmentState::returned)
        return refused(result, "the numbers have arrived, their verdict follows");
    if (!assignment.digests.empty()) {  // whatever the worker calls it
        give_up(assignment, reason);
        return {result.assignment, ReceiptKind::taken, {}};
    }
    drop_claim(assignment);
    if (result.kind == ResultKind::failed) {
        if (Job* const job = board_.find_unfinished(assignment.job)) {
            if (OpenTask* const task = job->queue.find(assignment.task)) ++task->failures;
            journal_.event(assignment.job, fmt::format("task {}: computer {} failed: {}", assignment.task,
                                                       assignment.computer, reason));
        }
        book_.fail(assignment, reason);
    } else {
        book_.hand_back(assignment, reason);
    }
    return {result.assignment, ReceiptKind::taken, {}};
}

OpenTask* ExchangeDesk::task_of(const Assignment& assignment) {
    Job* const job = board_.find_unfinished(assignment.job);
    return job == nullptr ? nullptr : job->queue.find(assignment.task);
}

void ExchangeDesk::evaluate(JobId job_id, TaskNumber task) {
    if (Job* const job = board_.find_unfinished(job_id)) board_.judge().evaluate(*job, task);
}

void ExchangeDesk::drop_claim(Assignment& assignment) {
    if (OpenTask* const task = task_of(assignment)) std::erase(task->claims, assignment.id);
}

// A look-up reads the database on the thread that all contributors wait for.
bool ExchangeDesk::may_look_up(const AssignmentId& id) {
    if (!book_.was_issued(id)) return true;
    if (look_ups_left_ == 0) return false;
    --look_ups_left_;
    return true;
}

Receipt ExchangeDesk::receipt_for_closed(const LiveComputer& computer, const Result& result) {
    const std::optional<Assignment> closed = book_.find_closed(result.assignment);
    if (!closed || closed->id != result.assignment || closed->computer != computer.record.id)
        return refused(result, "expected an assignment of this computer, found none of that id");
    // Sent again because the reply was lost: what it meant has been told, or will be in this reply.
    const bool committed_again = result.kind == ResultKind::committed && closed->digests == result.digests;
    if (!closed->digests.empty() && (committed_again || result.kind == ResultKind::data))
        return {result.assignment, ReceiptKind::repeated, {}};
    return refused(result, fmt::format("the assignment is over ({})", name_of(closed->state)));
}

void ExchangeDesk::remember_closed(LiveComputer& computer, const AssignmentId& id) {
    const std::optional<Assignment> closed = book_.find_closed(id);
    const bool own = closed && closed->id == id && closed->computer == computer.record.id;
    if (own && (closed->state == AssignmentState::agreed || closed->state == AssignmentState::disagreed))
        computer.decided[id] = {id, closed->state == AssignmentState::agreed, 0, closed->reason};
    else
        computer.cancelled[id] = own ? closed->reason : "the lab doesn't know this assignment";
}

bool ExchangeDesk::tell_to_send(Assignment& assignment, ExchangeReply& reply) {
    if (!assignment.asked_to_send || assignment.state == AssignmentState::returned) return false;
    reply.send.push_back(assignment.id);
    const uint64_t now_ms = environment_.now_ms();
    const bool news = assignment.told_to_send_ms == 0 || now_ms - assignment.told_to_send_ms >= tell_again_ms;
    if (news) assignment.told_to_send_ms = now_ms;
    return news;
}

bool ExchangeDesk::add_news(LiveComputer& computer, const std::vector<AssignmentId>& holding,
                            ExchangeReply& reply) {
    bool must_send = false;
    // What the worker no longer lists it has understood.
    if (!computer.decided.empty() || !computer.cancelled.empty()) {
        const std::unordered_set<AssignmentId, AssignmentIdHash> held(holding.begin(), holding.end());
        std::erase_if(computer.decided, [&](const auto& entry) { return !held.contains(entry.first); });
        std::erase_if(computer.cancelled, [&](const auto& entry) { return !held.contains(entry.first); });
    }
    for (const AssignmentId& id : holding) {
        Assignment* const assignment = book_.find(id);
        if (assignment != nullptr && assignment->computer == computer.record.id) {
            must_send |= tell_to_send(*assignment, reply);
            continue;
        }
        if (!computer.decided.contains(id) && !computer.cancelled.contains(id)) {
            if (!may_look_up(id)) continue;
            remember_closed(computer, id);
        }
        if (const auto decided = computer.decided.find(id); decided != computer.decided.end())
            reply.decided.push_back(decided->second);
        else
            reply.cancel.push_back({id, computer.cancelled.at(id)});
    }
    return must_send;
}

bool ExchangeDesk::serve(LiveComputer& computer) {
    ExchangeReply reply;
    bool must_send = false;
    for (const auto& [id, decision] : computer.decided) reply.decided.push_back(decision);
    for (const auto& [id, reason] : computer.cancelled) reply.cancel.push_back({id, reason});
    if (computer.has_news)
        for (const AssignmentId& id : computer.open) must_send |= tell_to_send(*book_.find(id), reply);
    if (computer.wanted_tasks > 0) dispatcher_.grant(computer, reply.tasks);
    const bool something =
        !reply.tasks.empty() || must_send || !reply.decided.empty() || !reply.cancel.empty();
    if (!something && environment_.now_ms() < computer.waiting->answer_by_ms) return false;
    reply.notice = contributors_.why_not(computer);
    if (reply.notice.empty()) reply.notice = board_.held_back();
    answer(computer, std::move(reply), std::exchange(computer.waiting, std::nullopt)->done);
    return true;
}

void ExchangeDesk::serve_waiting() {
    const bool work = dispatcher_.has_work();
    const uint64_t now_ms = environment_.now_ms();
    for (auto& [id, computer] : contributors_.computers()) {
        if (!computer.waiting) continue;
        if (computer.has_news || (work && computer.wanted_tasks > 0) ||
            now_ms >= computer.waiting->answer_by_ms)
            serve(computer);
    }
}

void ExchangeDesk::release_waiting() {
    for (auto& [id, computer] : contributors_.computers())
        if (computer.waiting) std::exchange(computer.waiting, std::nullopt)->done(ExchangeReply{});
}

std::optional<ExchangeDesk::BlobPlace> ExchangeDesk::find_blob(const LiveComputer& computer,
                                                               const Digest& digest) {
    for (const AssignmentId& id : computer.open) {
        const Assignment& assignment = *book_.find(id);
        Job* const job = board_.find_unfinished(assignment.job);
        const OpenTask* const task = job == nullptr ? nullptr : job->queue.find(assignment.task);
        if (task == nullptr) continue;
        const auto& inputs = task->prepared.message->inputs;
        for (size_t i = 0; i < inputs.size(); ++i)
            if (!inputs[i].bytes && inputs[i].digest == digest)
                return BlobPlace{job->plan, job->plan->slices(assignment.task)[i]};
    }
    return std::nullopt;
}

std::optional<ExchangeDesk::UploadPlace> ExchangeDesk::find_upload(const LiveComputer& computer,
                                                                   const Digest& digest) {
    for (const AssignmentId& id : computer.open) {
        const Assignment& assignment = *book_.find(id);
        const auto first = std::find(assignment.digests.begin(), assignment.digests.end(), digest);
        const OpenTask* const task = task_of(assignment);
        if (first == assignment.digests.end() || task == nullptr) continue;
        const std::vector<TensorSpec>& specs = task->prepared.outputs;
        UploadPlace place{id, {}, assignment.key, {}, assignment.asked_to_send, false};
        for (auto i = static_cast<size_t>(first - assignment.digests.begin()); i < specs.size(); ++i) {
            if (place.outputs.empty()) place.spec = specs[i];
            if (assignment.digests[i] == digest && specs[i] == place.spec) place.outputs.push_back(i);
        }
        place.complete = assignment.state == AssignmentState::returned ||
                         (assignment.arriving && (*assignment.arriving)[place.outputs[0]]);
        return place;
    }
    return std::nullopt;
}

std::string ExchangeDesk::take_upload(const LiveComputer& computer, const UploadPlace& place,
                                      ArrivedOutput output) {
    Assignment* const assignment = book_.find(place.assignment);
    if (assignment == nullptr || assignment->computer != computer.record.id) return "the assignment is over";
    if (assignment->state == AssignmentState::returned) return "the numbers had arrived before";
    if (!assignment->arriving)
        assignment->arriving =
            std::make_shared<std::vector<std::optional<ArrivedOutput>>>(assignment->digests.size());
    std::vector<std::optional<ArrivedOutput>>& arriving = *assignment->arriving;
    if (arriving.at(place.outputs[0])) return "the numbers had arrived before";
    for (size_t i = 1; i < place.outputs.size(); ++i)
        arriving.at(place.outputs[i]) = ArrivedOutput{output.tensor.clone(), output.reservation};
    arriving.at(place.outputs[0]) = std::move(output);
    if (!std::all_of(arriving.begin(), arriving.end(),
                     [](const auto& arrived) { return arrived.has_value(); }))
        return {};
    struct Arrived {
        std::vector<Tensor> outputs;
        std::vector<std::shared_ptr<const void>> reservations;
    };
    auto arrived = std::make_shared<Arrived>();
    for (std::optional<ArrivedOutput>& each : arriving) {
        arrived->outputs.push_back(std::move(each->tensor));
        arrived->reservations.push_back(std::move(each->reservation));
    }
    const std::shared_ptr<const std::vector<Tensor>> outputs(arrived, &arrived->outputs);
    assignment->arriving.reset();
    const JobId job_id = assignment->job;
    const TaskNumber task = assignment->task;
    book_.take_outputs(*assignment, outputs);
    evaluate(job_id, task);
    board_.judge().look();
    return {};
}

void ExchangeDesk::drop_assignments(const LiveComputer& computer, const std::string& reason) {
    const std::vector<AssignmentId> ids(computer.open.begin(), computer.open.end());
    for (const AssignmentId& id : ids) {
        Assignment& assignment = *book_.find(id);
        const JobId job_id = assignment.job;
        const TaskNumber task = assignment.task;
        drop_claim(assignment);
        book_.cancel(assignment, reason);
        evaluate(job_id, task);
    }
    board_.judge().look();
}

void ExchangeDesk::expire() {
    for (const AssignmentId& id : book_.overdue(most_expired_at_once)) {
        Assignment& assignment = *book_.find(id);
        if (!book_.expire(assignment)) continue;
        journal_.event(assignment.job, fmt::format("task {}: computer {} is late; others may get the task",
                                                   assignment.task, assignment.computer));
        evaluate(assignment.job, assignment.task);
    }
    board_.judge().look();
}

}  // namespace goblin::lab
