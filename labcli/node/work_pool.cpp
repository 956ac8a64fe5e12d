// Runs slow work on a few threads.
#include "labcli/node/work_pool.hpp"

namespace goblin::lab {

WorkPool::WorkPool(unsigned threads) {
    for (unsigned thread = 0; thread < threads; ++thread)
        threads_.emplace_back([this, thread] { run(thread); });
}

WorkPool::~WorkPool() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        queue_.clear();
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void WorkPool::post(Work work) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        queue_.push_back(std::move(work));
    }
    arrived_.notify_one();
}

void WorkPool::run(unsigned thread) {
    while (true) {
        Work work;
        {
            std::unique_lock lock(mutex_);
            arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            work = std::move(queue_.front());
            queue_.pop_front();
        }
        work(thread);
    }
}

}  // namespace goblin::lab
