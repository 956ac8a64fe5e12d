// Runs jobs on a few threads, in order of arrival.
#include "labcli/service/blob_threads.hpp"

namespace goblin::lab {

BlobThreads::BlobThreads(size_t count) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

BlobThreads::~BlobThreads() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        jobs_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void BlobThreads::run(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void BlobThreads::work() {
    while (true) {
        std::function<void()> job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job();
    }
}

}  // namespace goblin::lab
