// Device: one engine with the threads around it. While one task computes, the next one's inputs are read from
// the disk and the last one's outputs are digested and stored, so that the engine waits for neither.
//
// Inputs stay in memory while the limit allows, since neighbouring tiles of a product share them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "app/worker/compute_job.hpp"
#include "app/worker/resident_inputs.hpp"

namespace goblin::worker {

class Device {
  public:
    using Done = std::function<void(ComputeOutcome)>;

    // `memory_limit_bytes` bounds inputs, outputs and the engine's buffers of all tasks inside together.
    Device(std::unique_ptr<Engine> engine, DeviceOffer offer, uint64_t memory_limit_bytes);
    // Stops what is inside and waits for it; each `done` is still called.
    ~Device();

    const DeviceOffer& offer() const { return offer_; }
    // Empty when the task can run here; else the reason.
    std::optional<std::string> why_not(const Graph& graph) const;

    // Two tasks at most wait and compute here.
    bool has_room() const;
    bool idle() const;
    // `done` is called once, on one of the device's threads.
    void submit(ComputeOrder order, Done done);
    // The outcome arrives within about 100 ms, `stopped` unless the task had just been computed.
    void cancel(const TaskName& task);
    // For how long the engine has gone on computing after it was told to stop; 0 when it hasn't been.
    std::chrono::milliseconds overdue() const;

  private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;
    struct Job {
        ComputeOrder order;
        Done done;
        std::stop_source stop;
        uint64_t bytes = 0;  // beside resident inputs, while `admitted`
        bool admitted = false;
        bool cancelled = false;  // by cancel()
        bool too_long = false;
        std::vector<BlobName> wanted;  // residents that must stay for it
        std::vector<Tensor> inputs;    // while it runs
        std::vector<Tensor> outputs;
        ComputeOutcome outcome;
    };
    using JobPtr = std::shared_ptr<Job>;

    void tend();
    void compute();
    bool admit(Job& job);
    void load(Lock& lock, const JobPtr& job);
    void read_blobs(Lock& lock, Job& job);
    void borrow_inputs(Job& job);
    void give_back_inputs(Job& job);
    void finish(Lock& lock, const JobPtr& job);
    void stop_when_too_long();

    const std::unique_ptr<Engine> engine_;
    const DeviceOffer offer_;
    const uint64_t memory_limit_bytes_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    ResidentInputs residents_;
    std::vector<JobPtr> inside_;
    std::deque<JobPtr> to_load_;
    std::deque<JobPtr> to_run_;
    std::deque<JobPtr> to_store_;
    JobPtr running_;
    std::optional<Clock::time_point> deadline_;      // of what is running
    std::optional<Clock::time_point> told_to_stop_;  // what is running
    bool closing_ = false;
    std::thread tending_;
    std::thread computing_;
};

}  // namespace goblin::worker
