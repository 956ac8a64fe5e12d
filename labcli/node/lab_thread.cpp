// Runs turns one after another, and ticks in between.
#include "labcli/node/lab_thread.hpp"

#include <chrono>

namespace goblin::lab {

namespace {
constexpr std::chrono::milliseconds tick_interval{100};
}

void LabThread::start(Hooks hooks) {
    hooks_ = std::move(hooks);
    thread_ = std::thread([this] { run(); });
}

void LabThread::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    arrived_.notify_one();
    if (thread_.joinable()) thread_.join();
}

bool LabThread::offer(std::function<void()> turn) {
    {
        const std::lock_guard lock(mutex_);
        if (queue_.size() >= most_waiting) return false;
        if (stopping_) return true;
        queue_.push_back(std::move(turn));
    }
    arrived_.notify_one();
    return true;
}

void LabThread::post(std::function<void()> turn) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        queue_.push_back(std::move(turn));
    }
    arrived_.notify_one();
}

void LabThread::wait_until(std::function<bool()> condition) {
    auto watch = std::make_shared<Watch>();
    watch->condition = std::move(condition);
    std::future<void> held = watch->held.get_future();
    post([this, watch] { watches_.push_back(watch); });
    watch.reset();
    answer_of(held);
}

void LabThread::look_at_watches() {
    std::erase_if(watches_, [](const std::shared_ptr<Watch>& watch) {
        if (!watch->condition()) return false;
        watch->held.set_value();
        return true;
    });
}

bool LabThread::take_back(const std::string& what) {
    if (!hooks_.drop_turn()) return true;
    diverged_ = true;
    hooks_.diverged(what);
    return false;
}

void LabThread::take_turn(const std::function<void()>& turn) {
    try {
        turn();
        if (diverged_) return;
        hooks_.end_turn();
        look_at_watches();
    } catch (const std::exception& error) {
        if (take_back(error.what())) hooks_.broken(error.what());
    }
}

// Whoever waits for a turn or a condition is let go.
void LabThread::end() {
    std::deque<std::function<void()>> dropped;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        dropped.swap(queue_);
    }
    watches_.clear();
}

void LabThread::run() {
    auto next_tick = std::chrono::steady_clock::now() + tick_interval;
    while (!diverged_) {
        std::deque<std::function<void()>> turns;
        {
            std::unique_lock lock(mutex_);
            arrived_.wait_until(lock, next_tick, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_ && queue_.empty()) break;
            turns.swap(queue_);
        }
        for (const auto& turn : turns) {
            if (diverged_) break;
            take_turn(turn);
        }
        if (diverged_ || std::chrono::steady_clock::now() < next_tick) continue;
        take_turn(hooks_.tick);
        next_tick = std::chrono::steady_clock::now() + tick_interval;
    }
    end();
}

}  // namespace goblin::lab
