// WorkPool: threads that do the lab node's slow work, in the order it came.
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
    // Work may not throw. The number of a thread, below `threads`, is given to the work it runs.
    using Work = std::function<void(unsigned thread)>;

    explicit WorkPool(unsigned threads);
    // Drops what hasn't begun and waits for what has.
    ~WorkPool();
    WorkPool(const WorkPool&) = delete;
    WorkPool& operator=(const WorkPool&) = delete;

    void post(Work work);

  private:
    void run(unsigned thread);

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Work> queue_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace goblin::lab
