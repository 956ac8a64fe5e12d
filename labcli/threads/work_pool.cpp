// Runs slow work on a few threads.
#include "labcli/threads/work_pool.hpp"

#include <cassert>
#include <utility>

namespace goblin::lab {

WorkPool::WorkPool(size_t threads, size_t most_waiting) : most_waiting_(most_waiting) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkPool::~WorkPool() {
    std::deque<Work> dropped;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        dropped.swap(queue_);
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::offer(Work work) {
    {
        const std::lock_guard lock(mutex_);
        if (queue_.size() >= most_waiting_) return false;
        if (stopping_) return true;
        queue_.push_back(std::move(work));
    }
    arrived_.notify_one();
    return true;
}

void WorkPool::post(Work work) {
    const bool taken = offer(std::move(work));
    assert(taken);
    (void)taken;
}

void WorkPool::run() {
    while (true) {
        Work work;
        {
            std::unique_lock lock(mutex_);
            arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            work = std::move(queue_.front());
            queue_.pop_front();
        }
        work();
    }
}

}  // namespace goblin::lab
