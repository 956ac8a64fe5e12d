// WorkPool: threads that do slow work, in the order it came, so that those who answer never wait for a disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace goblin::lab {

class WorkPool {
  public:
    // May not throw.
    using Work = std::function<void()>;

    // At most `most_waiting` wait for a thread.
    WorkPool(size_t threads, size_t most_waiting);
    // Drops what hasn't begun and waits for what has.
    ~WorkPool();
    WorkPool(const WorkPool&) = delete;
    WorkPool& operator=(const WorkPool&) = delete;

    // From any thread. For work that others ask for: false, and it is dropped, when too much waits.
    bool offer(Work work);
    // For work whose amount is bounded by those who give it out.
    void post(Work work);

  private:
    void run();

    const size_t most_waiting_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Work> queue_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace goblin::lab
