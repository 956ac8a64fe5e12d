// A fixed number of threads that share the items of a loop.
#include "core/engine/cpu/thread_pool.hpp"

#include <system_error>

#include "core/arithmetic/float_environment.hpp"
#include "core/error.hpp"

namespace goblin {

ThreadPool::ThreadPool(unsigned threads) {
    if (threads < 1 || threads > max_pool_threads)
        throw Error(ErrorKind::usage, "expected 1 to {} threads, found {}", max_pool_threads, threads);
    workers_.reserve(threads - 1);
    try {
        for (unsigned thread = 1; thread < threads; ++thread)
            workers_.emplace_back([this, thread] { work(thread); });
    } catch (const std::system_error& error) {
        const size_t started = workers_.size();
        close();
        throw Error(ErrorKind::io, "expected to start {} threads, the system refused after {}: {}; use fewer",
                    threads - 1, started, error.what());
    }
}

ThreadPool::~ThreadPool() {
    close();
}

void ThreadPool::close() noexcept {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    begun_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const Loop& loop) {
    next_item_ = 0;
    // A loop of one item is the caller's alone: waking the others costs more than they could save.
    const bool shared = loop.count > 1 && !workers_.empty();
    if (shared) {
        {
            const std::lock_guard lock(mutex_);
            loop_ = loop;
            open_ = true;
            ++generation_;
        }
        begun_.notify_all();
    }
    take_items(loop, 0);
    if (shared) {
        // Workers that the system hasn't woken by now are not waited for.
        std::unique_lock lock(mutex_);
        open_ = false;
        ended_.wait(lock, [&] { return joined_ == 0; });
    }
}

void ThreadPool::take_items(const Loop& loop, unsigned thread) noexcept {
    const FloatEnvironment environment;
    for (int64_t item; (item = next_item_.fetch_add(1, std::memory_order_relaxed)) < loop.count;)
        loop.call(loop.body, item, thread);
}

void ThreadPool::work(unsigned thread) noexcept {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
        begun_.wait(lock, [&] { return closing_ || (open_ && generation_ != seen); });
        if (closing_) return;
        seen = generation_;
        ++joined_;
        const Loop loop = loop_;
        lock.unlock();
        take_items(loop, thread);
        lock.lock();
        if (--joined_ == 0) ended_.notify_one();
    }
}

}  // namespace goblin
