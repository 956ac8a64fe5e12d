// Exchanges, computes, keeps books.
#include "tests/support/contributor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/engine/reference/reference_engine.hpp"
#include "core/error.hpp"
#include "core/work/hex.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

constexpr uint64_t work_wanted_ms = 600'000;
constexpr uint64_t waiting_step_ms = 100;

Contributor::Settings settings_for(const LabProcess& lab, const std::string& name, Contributor::Lie lie) {
    Contributor::Settings settings;
    settings.lab = lab.client_settings();
    settings.link = lab.invite();
    settings.name = name;
    settings.lie = std::move(lie);
    return settings;
}

std::string key_of(const AssignmentId& id) {
    return to_hex(id);
}

}  // namespace

EnrolRequest enrolment(const InvitationLink& link, const LabInfo& lab, const VolunteerIdentity& identity,
                       const FixedBytes<16>& mark, const std::string& name) {
    EnrolRequest request;
    request.token = link.token;
    request.volunteer_key = identity.public_key();
    request.nonce = lab.nonce;
    request.signature = identity.sign(enrolment_statement(link.lab_key, request.token, request.nonce));
    request.computer = mark;
    request.computer_name = name;
    return request;
}

Contributor::Contributor(Settings settings)
    : settings_(std::move(settings)),
      link_(InvitationLink::parse(settings_.link)),
      wire_(settings_.lab),
      identity_(random_bytes<VolunteerSeed>(), link_.lab_key),
      mark_(random_bytes<FixedBytes<16>>()),
      session_(random_bytes<FixedBytes<16>>()),
      engine_(make_reference_engine()) {
    wire_.enrol(enrolment(link_, wire_.lab_info(), identity_, mark_, settings_.name));
}

Contributor::Contributor(const LabProcess& lab, const std::string& name, Lie lie)
    : Contributor(settings_for(lab, name, std::move(lie))) {}

bool Contributor::is_small(const Work& work) const {
    return std::all_of(work.outputs.begin(), work.outputs.end(), [](const Tensor& output) {
        return output.size_bytes() <= limits::inline_tensor_bytes;
    });
}

bool Contributor::step(uint64_t wait_ms) {
    std::vector<Result> results;
    for (auto& [key, work] : works_) {
        if (results.size() == limits::exchange_results) break;
        if (work.stage == Work::Stage::granted) results.push_back(commitment(work));
        if (work.stage != Work::Stage::asked) continue;
        work.stage = Work::Stage::sent;
        if (is_small(work))
            results.push_back(data(work));
        else
            upload_if_wanted(work);
    }
    ExchangeRequest request = request_of(std::move(results), settings_.tasks_at_once);
    request.wait_ms = request.results.empty() ? wait_ms : 0;
    const ExchangeReply reply = exchange(request);
    take(reply);
    return !(reply.acknowledged.empty() && reply.tasks.empty() && reply.send.empty() &&
             reply.decided.empty() && reply.cancel.empty());
}

void Contributor::finish_up(int patience_ms) {
    settings_.tasks_at_once = 0;
    const bool done =
        wait_until([&] { return step() || works_.empty() ? works_.empty() : false; }, patience_ms);
    if (!done)
        throw Error(ErrorKind::failed,
                    "expected the lab to decide on all of {}'s work, found {} assignments left", name(),
                    works_.size());
}

ExchangeRequest Contributor::request_of(std::vector<Result> results, uint64_t want_tasks) {
    ExchangeRequest request;
    request.session = session_;
    request.sequence = sequence_++;
    request.results = std::move(results);
    request.want.devices.push_back({"cpu", "a simulated processor", settings_.speed_flops,
                                    settings_.takes_floats, settings_.memory_bytes});
    request.want.tasks = want_tasks;
    request.want.work_ms = work_wanted_ms;
    request.want.blobs_added = new_blobs_;
    for (const auto& [key, work] : works_) request.holding.push_back(work.id());
    request.state = "computing";
    return request;
}

ExchangeReply Contributor::exchange(const ExchangeRequest& request) {
    ExchangeReply reply = wire_.exchange(request);
    new_blobs_.clear();
    return reply;
}

void Contributor::take(const ExchangeReply& reply) {
    notice = reply.notice;
    for (const Receipt& receipt : reply.acknowledged) {
        Work* const work = find(receipt.assignment);
        if (receipt.kind == ReceiptKind::refused) {
            refusals.push_back(receipt.reason);
            works_.erase(key_of(receipt.assignment));
        } else if (work != nullptr) {
            if (work->stage == Work::Stage::granted)
                work->stage = Work::Stage::committed;
            else if (work->stage == Work::Stage::asked)
                work->stage = Work::Stage::sent;
        }
    }
    for (const AssignmentId& id : reply.send)
        if (Work* const work = find(id)) work->stage = Work::Stage::asked;
    for (const Decision& decision : reply.decided) {
        if (works_.erase(key_of(decision.assignment)) == 0) continue;
        if (decision.agreed)
            ++agreed;
        else
            convictions.push_back(decision.reason);
    }
    for (const Cancel& cancel : reply.cancel)
        if (works_.erase(key_of(cancel.assignment)) > 0) cancelled.push_back(cancel.reason);
    for (const Grant& grant : reply.tasks) {
        const auto [entry, added] = works_.try_emplace(key_of(grant.assignment));
        if (!added) continue;
        entry->second.grant = grant;
        ++taken;
        compute(entry->second);
    }
}

void Contributor::compute(Work& work) {
    const Task task = task_of(work.grant.task);
    for (size_t i = 0; i < task.inputs.size(); ++i) {
        Tensor& input = work.inputs.emplace_back(task.graph.inputs[i]);
        const TaskInput& source = task.inputs[i];
        if (source.inline_bytes) {
            if (!source.inline_bytes->empty())
                std::memcpy(input.bytes().data(), source.inline_bytes->data(), input.size_bytes());
            continue;
        }
        auto held = blobs_.find(source.digest);
        if (held == blobs_.end()) {
            held = blobs_.emplace(source.digest, wire_.get_blob(source.digest, input.size_bytes())).first;
            new_blobs_.push_back(source.digest);
        }
        std::memcpy(input.bytes().data(), held->second.data(), input.size_bytes());
    }
    work.outputs = engine_->run(task.graph, work.inputs, {});
    if (settings_.lie) settings_.lie(work);
}

Work* Contributor::take_task(int patience_ms) {
    const uint64_t before = taken;
    AssignmentId got{};
    const auto ask = [&] {
        const ExchangeReply reply = exchange(request_of({}, 1));
        take(reply);
        if (!reply.tasks.empty()) got = reply.tasks.front().assignment;
        return taken > before;
    };
    return wait_until(ask, patience_ms) ? find(got) : nullptr;
}

Receipt Contributor::tell(Result result) {
    ExchangeReply reply = exchange(request_of({std::move(result)}, 0));
    if (reply.acknowledged.size() != 1)
        throw Error(ErrorKind::failed, "expected one receipt, found {}", reply.acknowledged.size());
    const Receipt receipt = reply.acknowledged.front();
    if (receipt.kind == ReceiptKind::refused) reply.acknowledged.clear();  // the test goes on with this work
    take(reply);
    return receipt;
}

Result Contributor::commitment(const Work& work) {
    Result result;
    result.assignment = work.id();
    for (const Tensor& output : work.outputs) result.digests.push_back(tensor_digest(work.grant.key, output));
    result.compute_us = 1;
    return result;
}

Result Contributor::data(const Work& work) {
    Result result;
    result.assignment = work.id();
    result.kind = ResultKind::data;
    for (const Tensor& output : work.outputs) result.outputs.push_back(message_of(frame_of(output)));
    return result;
}

Result Contributor::failure(const Work& work, const std::string& reason) {
    Result result;
    result.assignment = work.id();
    result.kind = ResultKind::failed;
    result.reason = reason;
    return result;
}

Result Contributor::handing_back(const Work& work) {
    Result result;
    result.assignment = work.id();
    result.kind = ResultKind::handed_back;
    return result;
}

int Contributor::upload(Work& work) {
    int status = 0;
    for (const Tensor& output : work.outputs)
        status = wire_.put_blob(tensor_digest(work.grant.key, output), output.bytes());
    work.stage = Work::Stage::sent;
    return status;
}

void Contributor::upload_if_wanted(Work& work) {
    try {
        upload(work);
    } catch (const Refused& refused) {
        // The task was decided between the wish and the upload.
        if (refused.status != 404 && refused.status != 409) throw;
        refusals.push_back(refused.error.message);
    }
}

bool Contributor::wait_until_asked(const AssignmentId& id, int patience_ms) {
    const auto asked = [&] {
        take(exchange(request_of({}, 0)));
        const Work* const work = find(id);
        return work == nullptr || work->stage == Work::Stage::asked;
    };
    return wait_until(asked, patience_ms) && find(id) != nullptr;
}

void Contributor::start_again(bool forgetful) {
    session_ = random_bytes<FixedBytes<16>>();
    sequence_ = 0;
    if (forgetful) works_.clear();
}

Work* Contributor::find(const AssignmentId& id) {
    const auto found = works_.find(key_of(id));
    return found == works_.end() ? nullptr : &found->second;
}

void Crew::add(Contributor& contributor) {
    threads_.emplace_back([this, &contributor] {
        try {
            while (!stop_) contributor.step(waiting_step_ms);
        } catch (const Refused& refused) {
            const std::lock_guard lock(mutex_);
            error_ =
                std::make_exception_ptr(Error(ErrorKind::failed, "{} was refused: {} {}", contributor.name(),
                                              refused.status, refused.error.message));
        } catch (...) {
            const std::lock_guard lock(mutex_);
            error_ = std::current_exception();
        }
    });
}

void Crew::stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    stop_ = false;
}

void Crew::rest() {
    stop();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace goblin::test
