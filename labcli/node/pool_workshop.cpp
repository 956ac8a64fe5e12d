// Prepares, verifies and finishes on threads of their own.
#include "labcli/node/pool_workshop.hpp"

#include <cassert>

#include "core/arithmetic/contract.hpp"

namespace goblin::lab {

namespace {
// Small inputs of one task that ride along together; a reply must have room for several tasks.
constexpr uint64_t most_inline_bytes = uint64_t{1} << 20;
}  // namespace

PoolWorkshop::PoolWorkshop(LabThread& lab, unsigned threads) : lab_(lab), verifier_(threads) {}

PreparedTask PoolWorkshop::prepare_one(const std::shared_ptr<const Plan>& plan, TaskNumber number) {
    Task task;
    task.contract = contract_version;
    task.graph = plan->graph(number);
    PreparedTask prepared;
    uint64_t inline_bytes = 0;
    for (const SliceNumber slice : plan->slices(number)) {
        const uint64_t size_bytes = plan->slice_spec(slice).size_bytes();
        TaskInput& input = task.inputs.emplace_back();
        if (size_bytes <= limits::inline_tensor_bytes && inline_bytes + size_bytes <= most_inline_bytes) {
            inline_bytes += size_bytes;
            input.inline_bytes.emplace(size_bytes);
            plan->read_slice(slice, 0,
                             {reinterpret_cast<std::byte*>(input.inline_bytes->data()), size_bytes});
        } else {
            input.digest = digests_.digest(*plan, slice);
        }
        prepared.transfer_bytes += size_bytes;
    }
    const GraphCost cost = cost_of(task.graph);
    prepared.number = number;
    prepared.outputs = task.outputs();
    prepared.flops = cost.flops;
    prepared.memory_bytes = cost.memory_bytes;
    for (const TensorSpec& output : prepared.outputs) prepared.transfer_bytes += output.size_bytes();
    prepared.message = std::make_shared<const TaskMessage>(message_of(task));
    return prepared;
}

void PoolWorkshop::prepare(std::shared_ptr<Plan> plan, JobId, std::vector<TaskNumber> tasks,
                           std::function<void(PrepareAnswer)> done) {
    reading_.post([this, plan = std::move(plan), tasks = std::move(tasks), done = std::move(done)] {
        auto answer = std::make_shared<PrepareAnswer>();
        try {
            plan->check_inputs();
            for (const TaskNumber task : tasks) answer->tasks.push_back(prepare_one(plan, task));
        } catch (const std::exception& error) {
            answer->error = error.what();
        }
        lab_.post([answer, done] { done(std::move(*answer)); });
    });
}

void PoolWorkshop::verify(std::vector<VerifyRequest> requests,
                          std::function<void(std::vector<VerifyAnswer>)> done) {
    verifying_.post([this, requests = std::make_shared<std::vector<VerifyRequest>>(std::move(requests)),
                     done = std::move(done)] {
        auto answers = std::make_shared<std::vector<VerifyAnswer>>();
        for (const VerifyRequest& request : *requests) answers->push_back(verifier_.verify(request));
        requests->clear();  // the numbers' memory goes back here, not on the lab's thread
        lab_.post([answers, done] { done(std::move(*answers)); });
    });
}

void PoolWorkshop::compute(std::shared_ptr<Plan> plan, JobId job, TaskNumber task,
                           std::function<void(VerifyAnswer)> done) {
    verifying_.post([this, plan = std::move(plan), job, task, done = std::move(done)] {
        auto answer = std::make_shared<VerifyAnswer>(verifier_.compute(*plan, job, task));
        lab_.post([answer, done] { done(std::move(*answer)); });
    });
}

void PoolWorkshop::check_inputs(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) {
    read(std::move(done), [plan = std::move(plan)] { plan->check_inputs(); });
}

void PoolWorkshop::finish(std::shared_ptr<Plan> plan, std::function<void(std::string)> done) {
    read(std::move(done), [plan = std::move(plan)] { plan->finish(); });
}

void PoolWorkshop::read(std::function<void(std::string)> done, std::function<void()> work) {
    reading_.post([this, work = std::move(work), done = std::move(done)] {
        std::string error;
        try {
            work();
        } catch (const std::exception& failure) {
            error = failure.what();
        }
        lab_.post([error, done] { done(error); });
    });
}

void PoolWorkshop::discard(std::shared_ptr<Plan> plan) {
    removing_.post([plan = std::move(plan)] {
        try {
            plan->discard();
        } catch (const std::exception&) {
            // What couldn't be removed is named .partial-… beside the target; nothing depends on it.
        }
    });
}

}  // namespace goblin::lab
