// ThreadPool: a fixed number of threads that share the items of a loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace goblin {

inline constexpr unsigned max_pool_threads = 1024;

class ThreadPool {
  public:
    // `threads` counts the caller of for_each too, which works along: 1 starts none. Throws ErrorKind::usage
    // for 0 and above max_pool_threads, ErrorKind::io when the system refuses a thread.
    explicit ThreadPool(unsigned threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

    // Calls body(item, thread) for every item below `count`, thread being below threads(); each thread takes
    // the next item when it is done with its last, under the contract's FloatEnvironment. Returns when all
    // are done. One call at a time. The body cannot throw: an exception has no thread to go to.
    template <typename Body>
    void for_each(int64_t count, Body&& body) {
        using Plain = std::remove_reference_t<Body>;
        static_assert(std::is_nothrow_invocable_v<Plain&, int64_t, unsigned>);
        run({count, &body, [](void* context, int64_t item, unsigned thread) noexcept {
                 (*static_cast<Plain*>(context))(item, thread);
             }});
    }

  private:
    struct Loop {
        int64_t count = 0;
        void* body = nullptr;
        void (*call)(void* body, int64_t item, unsigned thread) noexcept = nullptr;
    };

    void run(const Loop& loop);
    void take_items(const Loop& loop, unsigned thread) noexcept;
    void work(unsigned thread) noexcept;
    void close() noexcept;

    std::mutex mutex_;
    std::condition_variable begun_;
    std::condition_variable ended_;
    // Under mutex_: the loop, its number (so that a worker joins each once), whether it may still be joined,
    // how many workers are in it, and whether the pool ends.
    Loop loop_;
    uint64_t generation_ = 0;
    bool open_ = false;
    unsigned joined_ = 0;
    bool closing_ = false;
    std::atomic<int64_t> next_item_{0};
    std::vector<std::thread> workers_;
};

}  // namespace goblin
