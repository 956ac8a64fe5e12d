// Joins, computes products of a few numbers, commits and sends.
#include "tests/support/small_task_volunteer.hpp"

#include <cstring>
#include <stdexcept>

#include "core/arithmetic/product.hpp"
#include "core/error.hpp"
#include "core/work/identity.hpp"

namespace goblin::test {

namespace {

uint64_t head_of(const AssignmentId& id) {
    uint64_t head = 0;
    std::memcpy(&head, id.data(), sizeof head);
    return head;
}

Tensor tensor_of_input(const TaskInputMessage& input) {
    if (!input.bytes) throw std::runtime_error("expected inputs that ride along, found a blob");
    return tensor_of(Frame{spec_of(input.spec), *input.bytes});
}

}  // namespace

SmallTaskVolunteer::SmallTaskVolunteer(const InvitationLink& link, uint64_t number,
                                       uint64_t results_per_exchange)
    : results_per_exchange_(results_per_exchange),
      lab_({.address = link.host, .port = link.port, .lab_key = link.lab_key, .from = {}}) {
    const VolunteerIdentity identity(random_bytes<VolunteerSeed>(), link.lab_key);
    EnrolRequest request;
    request.token = link.token;
    request.volunteer_key = identity.public_key();
    request.nonce = lab_.lab_info().nonce;
    request.signature = identity.sign(enrolment_statement(link.lab_key, link.token, request.nonce));
    request.computer = random_bytes<FixedBytes<16>>();
    request.computer_name = fmt::format("simulated {}", number);
    lab_.enrol(request);
    next_.session = random_bytes<FixedBytes<16>>();
    next_.want.devices = {{"cpu", "simulated", 100'000'000'000, true, uint64_t{1} << 30}};
    next_.want.work_ms = 60'000;
    next_.state = "computing";
}

void SmallTaskVolunteer::work(const std::atomic<bool>& stop) {
    while (!stop) {
        ++next_.sequence;
        next_.want.tasks = results_per_exchange_;
        next_.wait_ms = next_.results.empty() ? 200 : 0;
        ExchangeReply reply = lab_.exchange(next_);
        take(reply);
    }
}

void SmallTaskVolunteer::take(ExchangeReply& reply) {
    next_.results.clear();
    const auto forget = [&](const AssignmentId& id) {
        open_.erase(head_of(id));
        std::erase(next_.holding, id);
    };
    for (const Receipt& receipt : reply.acknowledged)
        if (receipt.kind == ReceiptKind::refused) throw std::runtime_error("refused: " + receipt.reason);
    for (const Decision& decision : reply.decided) {
        if (!decision.agreed)
            throw std::runtime_error("an honest volunteer was convicted: " + decision.reason);
        forget(decision.assignment);
    }
    for (const Cancel& cancel : reply.cancel) forget(cancel.assignment);
    for (const AssignmentId& id : reply.send) {
        Result result;
        result.assignment = id;
        result.kind = ResultKind::data;
        result.outputs.push_back(open_.at(head_of(id)).output);
        next_.results.push_back(std::move(result));
    }
    for (Grant& grant : reply.tasks) compute(grant);
}

void SmallTaskVolunteer::compute(Grant& grant) {
    const Tensor a = tensor_of_input(grant.task.inputs.at(0));
    const Tensor b = tensor_of_input(grant.task.inputs.at(1));
    const int64_t rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
    Tensor c(DType::f32, Shape{rows, columns});
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
            c.as<float>()[static_cast<size_t>(row * columns + column)] = product_element<float>(
                {a.as<float>().data() + row * depth, 1}, {b.as<float>().data() + column, columns}, depth);
    Result result;
    result.assignment = grant.assignment;
    result.digests = {tensor_digest(grant.key, c)};
    result.compute_us = 1;
    next_.results.push_back(std::move(result));
    next_.holding.push_back(grant.assignment);
    open_[head_of(grant.assignment)] = {message_of(frame_of(c))};
}

SmallTaskSwarm::SmallTaskSwarm(const InvitationLink& link, uint64_t volunteers,
                               uint64_t results_per_exchange) {
    for (uint64_t number = 0; number < volunteers; ++number)
        threads_.emplace_back(
            [this, link, number, results_per_exchange] { work(link, number, results_per_exchange); });
}

SmallTaskSwarm::~SmallTaskSwarm() {
    end();
}

void SmallTaskSwarm::stop() {
    end();
    if (error_) std::rethrow_exception(error_);
}

void SmallTaskSwarm::work(const InvitationLink& link, uint64_t number, uint64_t results_per_exchange) {
    try {
        SmallTaskVolunteer(link, number, results_per_exchange).work(stop_);
    } catch (const Refused& refused) {
        keep(std::make_exception_ptr(
            Error(ErrorKind::denied, "the lab refused a volunteer: {}", refused.error.message)));
    } catch (...) {
        keep(std::current_exception());
    }
}

void SmallTaskSwarm::keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
}

void SmallTaskSwarm::end() {
    stop_ = true;
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
}

}  // namespace goblin::test
