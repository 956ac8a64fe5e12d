// The threads that read and write blobs, so that no I/O thread ever waits for a disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace goblin::lab {

class BlobThreads {
  public:
    explicit BlobThreads(size_t count);
    // Finishes the jobs at hand and drops the waiting ones.
    ~BlobThreads();
    BlobThreads(const BlobThreads&) = delete;
    BlobThreads& operator=(const BlobThreads&) = delete;

    // The job must not throw. Each transfer has at most one job here, so the queue is bounded by them.
    void run(std::function<void()> job);

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace goblin::lab
