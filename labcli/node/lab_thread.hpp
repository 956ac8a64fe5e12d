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
#include <vector>

#include "core/error.hpp"

namespace goblin::lab {

class LabThread {
  public:
    // Requests that may wait for their turn. More than the contributors' connections make sense only when
    // turns don't get on: then newcomers are told so at once.
    static constexpr size_t most_waiting = 8192;

    struct Hooks {
        std::function<void()> tick;      // several times a second
        std::function<void()> end_turn;  // after every turn and tick
        // Instead of that, when the turn threw: forgets what it has put into the journal; whether that was
        // anything.
        std::function<bool()> drop_turn;
        // A turn threw, which none should. Nothing had changed: the others go on.
        std::function<void(const std::string& what)> broken;
        // A turn threw after it had changed something, so what is in memory isn't what is on disk: no turn is
        // taken any more.
        std::function<void(const std::string& what)> diverged;
    };
    LabThread() = default;
    ~LabThread() { stop(); }
    LabThread(const LabThread&) = delete;
    LabThread& operator=(const LabThread&) = delete;

    void start(Hooks hooks);
    // Runs what is queued, then ends. Later turns are dropped.
    void stop();

    // ---- from any thread
    // For requests: false, and the turn is dropped, when too many wait.
    bool offer(std::function<void()> turn);
    // For what the lab itself goes on with: answers of its own work, which is bounded where it is given out,
    // and the next one behind a turn that has ended.
    void post(std::function<void()> turn);
    // Runs it as a turn and waits for the answer; what it throws is thrown here. Empty-handed after stop().
    template <typename Function>
    auto call(Function function) {
        using Answer = decltype(function());
        auto guarded = [this, function = std::move(function)]() mutable {
            try {
                return function();
            } catch (const std::exception& error) {
                take_back(error.what());
                throw;
            }
        };
        auto task = std::make_shared<std::packaged_task<Answer()>>(std::move(guarded));
        std::future<Answer> answer = task->get_future();
        post([task] { (*task)(); });
        task.reset();  // so that a dropped turn breaks the promise
        return answer_of(answer);
    }
    // Returns once `condition`, looked at after every turn, holds.
    void wait_until(std::function<bool()> condition);

  private:
    struct Watch {
        std::function<bool()> condition;
        std::promise<void> held;
    };
    template <typename Answer>
    static Answer answer_of(std::future<Answer>& answer) {
        try {
            return answer.get();
        } catch (const std::future_error&) {
            throw Error(ErrorKind::network, "the lab node is stopping; try again when it runs");
        }
    }
    void run();
    void take_turn(const std::function<void()>& turn);
    // What the turn at hand has changed, before it threw; true when that was nothing.
    bool take_back(const std::string& what);
    void look_at_watches();
    void end();

    Hooks hooks_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::function<void()>> queue_;
    bool stopping_ = false;
    std::thread thread_;
    // On the thread alone.
    std::vector<std::shared_ptr<Watch>> watches_;
    bool diverged_ = false;
};

}  // namespace goblin::lab
