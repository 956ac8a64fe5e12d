// Moves tasks through a device: load and store on one thread, compute on the other.
#include "app/worker/device.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {

constexpr size_t jobs_ahead = 2;

bool has_floats(const TensorSpec& spec) {
    return dtype_info(spec.dtype).is_float;
}

Tensor inline_tensor(const ComputeInput& input) {
    Tensor tensor(input.spec);
    if (!input.inline_bytes->empty())
        std::memcpy(tensor.bytes().data(), input.inline_bytes->data(), input.inline_bytes->size());
    return tensor;
}

}  // namespace

Device::Device(std::unique_ptr<Engine> engine, DeviceOffer offer, uint64_t memory_limit_bytes)
    : engine_(std::move(engine)), offer_(std::move(offer)), memory_limit_bytes_(memory_limit_bytes) {
    tending_ = std::thread([this] { tend(); });
    computing_ = std::thread([this] { compute(); });
}

Device::~Device() {
    {
        const Lock lock(mutex_);
        closing_ = true;
        for (const JobPtr& job : inside_) {
            job->cancelled = true;
            job->stop.request_stop();
        }
    }
    changed_.notify_all();
    tending_.join();
    computing_.join();
}

std::optional<std::string> Device::why_not(const Graph& graph) const {
    if (auto reason = engine_->why_not(graph)) return reason;
    const bool counts_only = std::none_of(graph.inputs.begin(), graph.inputs.end(), has_floats);
    if (!offer_.takes_floats && !counts_only)
        return "expected a task of integers, found one of floats, which this computer can't do exactly";
    const uint64_t needed = saturating_sum({engine_->memory_needed_bytes(graph), inputs_bytes(graph)});
    if (needed <= memory_limit_bytes_) return std::nullopt;
    return fmt::format(
        "expected a task that fits {} of memory, found one that needs {}; the owner can allow more with "
        "--memory",
        size_text(memory_limit_bytes_), size_text(needed));
}

bool Device::has_room() const {
    const Lock lock(mutex_);
    return inside_.size() - to_store_.size() < jobs_ahead && inside_.size() < 2 * jobs_ahead;
}

bool Device::idle() const {
    const Lock lock(mutex_);
    return inside_.empty();
}

void Device::submit(ComputeOrder order, Done done) {
    assert(order.inputs.size() == order.graph.inputs.size());
    const auto job = std::make_shared<Job>();
    // Outputs and the engine's buffers, and inputs that are no shared blob: inline ones and second copies.
    job->bytes = saturating_sum(
        {engine_->memory_needed_bytes(order.graph), inputs_bytes(order.graph) - order.blob_bytes()});
    job->order = std::move(order);
    job->done = std::move(done);
    {
        const Lock lock(mutex_);
        assert(!closing_);
        inside_.push_back(job);
        to_load_.push_back(job);
    }
    changed_.notify_all();
}

void Device::cancel(const TaskName& task) {
    {
        const Lock lock(mutex_);
        for (const JobPtr& job : inside_) {
            if (job->order.task != task || job->cancelled) continue;
            job->cancelled = true;
            job->stop.request_stop();
            if (job == running_) told_to_stop_ = Clock::now();
            if (std::erase(to_run_, job) > 0) {  // it need not wait for the one before it
                job->outcome.stopped = true;
                to_store_.push_back(job);
            }
        }
    }
    changed_.notify_all();
}

std::chrono::milliseconds Device::overdue() const {
    const Lock lock(mutex_);
    if (!told_to_stop_) return std::chrono::milliseconds(0);
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *told_to_stop_);
}

void Device::tend() {
    Lock lock(mutex_);
    while (!closing_ || !inside_.empty()) {
        stop_when_too_long();
        if (!to_store_.empty()) {
            const JobPtr job = to_store_.front();
            to_store_.pop_front();
            lock.unlock();
            if (job->outcome.kind == ComputeOutcome::Kind::computed)
                store_outputs(job->order, std::move(job->outputs), job->outcome);
            lock.lock();
            finish(lock, job);
        } else if (!to_load_.empty() && admit(*to_load_.front())) {
            const JobPtr job = to_load_.front();
            to_load_.pop_front();
            load(lock, job);
        } else if (deadline_) {
            changed_.wait_until(lock, *deadline_);
        } else {
            changed_.wait(lock);
        }
    }
    changed_.notify_all();  // the other thread ends as well
}

void Device::stop_when_too_long() {
    if (!deadline_ || Clock::now() < *deadline_) return;
    deadline_.reset();
    running_->too_long = true;
    running_->stop.request_stop();
    if (!told_to_stop_) told_to_stop_ = Clock::now();
}

// Takes the memory that the job needs, or says that it must wait for the jobs before it. What doesn't fit
// even alone is admitted too: load() hands it back.
bool Device::admit(Job& job) {
    if (job.cancelled) return true;
    bool alone = true;
    uint64_t others = 0;
    for (const JobPtr& other : inside_) {
        if (!other->admitted) continue;
        others = saturating_sum({others, other->bytes});
        alone = false;
    }
    uint64_t fresh = 0;
    for (const ComputeInput* blob : job.order.blobs()) {
        if (residents_.has(blob->name)) {
            residents_.want(blob->name);
            job.wanted.push_back(blob->name);
        } else {
            fresh = saturating_sum({fresh, blob->spec.size_bytes()});
        }
    }
    const uint64_t beside = saturating_sum({others, fresh, job.bytes});
    residents_.shrink_to(memory_limit_bytes_ - std::min(memory_limit_bytes_, beside));
    job.admitted = saturating_sum({beside, residents_.size_bytes()}) <= memory_limit_bytes_;
    if (!job.admitted) {
        for (const BlobName& name : job.wanted) residents_.unwant(name);
        job.wanted.clear();
    }
    return job.admitted || alone;
}

void Device::load(Lock& lock, const JobPtr& job) {
    if (job->cancelled) {
        job->outcome.stopped = true;
        return finish(lock, job);
    }
    if (!job->admitted) {
        job->outcome.reason = fmt::format("expected a task that fits {} of memory, found one that needs more",
                                          size_text(memory_limit_bytes_));
        return finish(lock, job);
    }
    try {
        read_blobs(lock, *job);
    } catch (const std::exception& error) {
        job->outcome.reason = error.what();
        return finish(lock, job);
    }
    if (!job->outcome.spoiled.empty()) {
        job->outcome.kind = ComputeOutcome::Kind::spoiled_input;
        return finish(lock, job);
    }
    to_run_.push_back(job);
    changed_.notify_all();
}

void Device::read_blobs(Lock& lock, Job& job) {
    for (const ComputeInput* blob : job.order.blobs()) {
        if (residents_.has(blob->name)) continue;
        lock.unlock();
        std::optional<Tensor> tensor;
        std::exception_ptr trouble;
        try {
            tensor = read_blob(*blob);
        } catch (...) {
            trouble = std::current_exception();
        }
        lock.lock();
        if (trouble) std::rethrow_exception(trouble);
        if (!tensor) {
            job.outcome.spoiled.push_back(blob->name);
            continue;
        }
        residents_.add(blob->name, std::move(*tensor));
        residents_.want(blob->name);
        job.wanted.push_back(blob->name);
    }
}

void Device::compute() {
    Lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return !to_run_.empty() || (closing_ && inside_.empty()); });
        if (to_run_.empty()) return;
        const JobPtr job = to_run_.front();
        to_run_.pop_front();
        running_ = job;
        if (job->order.longest_ms > 0)
            deadline_ = Clock::now() + std::chrono::milliseconds(job->order.longest_ms);
        changed_.notify_all();  // the other thread watches the time
        try {
            borrow_inputs(*job);
            lock.unlock();
            job->outputs =
                run_engine(*engine_, job->order, job->inputs,
                           {.stop = job->stop.get_token(), .memory_limit_bytes = job->bytes}, job->outcome);
            lock.lock();
        } catch (const std::exception& error) {
            job->outcome.reason = error.what();  // no memory for a second copy of an input
        }
        give_back_inputs(*job);
        if (job->too_long && job->outcome.stopped) {
            job->outcome.kind = ComputeOutcome::Kind::failed;
            job->outcome.stopped = false;
            job->outcome.reason = fmt::format(
                "expected the task to end within {}, four times what the lab said; it was stopped",
                duration_text(job->order.longest_ms));
        }
        running_.reset();
        deadline_.reset();
        told_to_stop_.reset();
        to_store_.push_back(job);
        changed_.notify_all();
    }
}

void Device::borrow_inputs(Job& job) {
    const auto& inputs = job.order.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].inline_bytes) {
            job.inputs.push_back(inline_tensor(inputs[i]));
        } else if (job.order.repeats_blob(i)) {
            const auto first = std::find_if(inputs.begin(), inputs.end(), [&](const ComputeInput& e) {
                return !e.inline_bytes && e.name == inputs[i].name;
            });
            job.inputs.push_back(job.inputs[static_cast<size_t>(first - inputs.begin())].clone());
        } else {
            job.inputs.push_back(residents_.lend(inputs[i].name));
        }
    }
}

void Device::give_back_inputs(Job& job) {
    for (size_t i = 0; i < job.inputs.size(); ++i) {
        const ComputeInput& input = job.order.inputs[i];
        if (!input.inline_bytes && !job.order.repeats_blob(i))
            residents_.give_back(input.name, std::move(job.inputs[i]));
    }
    job.inputs.clear();
}

void Device::finish(Lock& lock, const JobPtr& job) {
    for (const BlobName& name : job->wanted) residents_.unwant(name);
    inside_.erase(std::find(inside_.begin(), inside_.end(), job));
    changed_.notify_all();
    lock.unlock();
    job->done(std::move(job->outcome));
    lock.lock();
}

}  // namespace goblin::worker
