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

void LabThread::post(std::function<void()> turn) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        queue_.push_back(std::move(turn));
    }
    arrived_.notify_one();
}

void LabThread::take_turn(const std::function<void()>& turn) {
    try {
        turn();
        hooks_.end_turn();
    } catch (const std::exception& error) {
        hooks_.broken(error.what());
    }
}

void LabThread::run() {
    auto next_tick = std::chrono::steady_clock::now() + tick_interval;
    while (true) {
        std::deque<std::function<void()>> turns;
        {
            std::unique_lock lock(mutex_);
            arrived_.wait_until(lock, next_tick, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_ && queue_.empty()) return;
            turns.swap(queue_);
        }
        for (const auto& turn : turns) take_turn(turn);
        if (std::chrono::steady_clock::now() < next_tick) continue;
        take_turn(hooks_.tick);
        next_tick = std::chrono::steady_clock::now() + tick_interval;
    }
}

}  // namespace goblin::lab
