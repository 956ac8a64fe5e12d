// LabThread: the one thread that owns tasks and assignments. Everything that touches them is a turn on it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.hpp"

namespace goblin::lab {

class LabThread {
  public:
    struct Hooks {
        std::function<void()> tick;      // several times a second
        std::function<void()> end_turn;  // after every turn and tick
        // A turn threw, which none should: what it was doing is lost, the others go on.
        std::function<void(const std::string& what)> broken;
    };
    LabThread() = default;
    ~LabThread() { stop(); }
    LabThread(const LabThread&) = delete;
    LabThread& operator=(const LabThread&) = delete;

    void start(Hooks hooks);
    // Runs what is queued, then ends. Later turns are dropped.
    void stop();

    // From any thread.
    void post(std::function<void()> turn);
    // Runs it as a turn and waits for the answer; what it throws is thrown here. Empty-handed after stop().
    template <typename Function>
    auto call(Function function) {
        using Answer = decltype(function());
        auto task = std::make_shared<std::packaged_task<Answer()>>(std::move(function));
        std::future<Answer> answer = task->get_future();
        post([task] { (*task)(); });
        task.reset();  // so that a dropped turn breaks the promise
        try {
            return answer.get();
        } catch (const std::future_error&) {
            throw Error(ErrorKind::network, "the lab node is stopping; try again when it runs");
        }
    }

  private:
    void run();
    void take_turn(const std::function<void()>& turn);

    Hooks hooks_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::function<void()>> queue_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace goblin::lab
