// Runs an I/O thread and its periodic look at the connections.
#include "labcli/service/io_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <cassert>
#include <exception>
#include <vector>

#include <fmt/format.h>

namespace goblin::lab {

IoThread::IoThread(std::chrono::milliseconds look_interval, LogSink log)
    : mailbox_(std::make_shared<Mailbox>(context_)),
      look_interval_(look_interval),
      log_(std::move(log)),
      look_timer_(context_),
      patience_timer_(context_) {}

IoThread::~IoThread() {
    assert(!thread_.joinable());
}

void IoThread::start() {
    thread_ = std::thread([this] { run(); });
}

void IoThread::run() {
    auto work = asio::make_work_guard(context_);
    while (true) {
        try {
            while (!stopping_) context_.run_one();
            work.reset();
            context_.run();  // until the last connection has ended
            return;
        } catch (const std::exception& error) {
            if (log_) log_(LogLevel::error, fmt::format("network thread: {}", error.what()));
        }
    }
}

void IoThread::begin_stop(std::chrono::milliseconds patience) {
    mailbox_->post([this, patience] {
        stopping_ = true;
        const std::vector<Watched*> open(connections_.begin(), connections_.end());
        for (Watched* connection : open) connection->wind_down();
        patience_timer_.expires_after(patience);
        patience_timer_.async_wait([this](boost::system::error_code) {
            const std::vector<Watched*> left(connections_.begin(), connections_.end());
            for (Watched* connection : left) connection->end_now();
        });
        end_if_empty();
    });
}

void IoThread::join() {
    if (thread_.joinable()) thread_.join();
    mailbox_->close();
    assert(connections_.empty());
}

void IoThread::add(Watched& connection) {
    connections_.insert(&connection);
    if (stopping_) connection.wind_down();
    if (!looking_) look_around();
}

void IoThread::remove(Watched& connection) {
    connections_.erase(&connection);
    end_if_empty();
}

void IoThread::end_longest_idle() {
    Watched* longest = nullptr;
    auto since = Clock::time_point::max();
    for (Watched* connection : connections_) {
        const auto idle = connection->idle_since();
        if (!idle || *idle >= since) continue;
        longest = connection;
        since = *idle;
    }
    if (longest) longest->end_now();
}

void IoThread::end_if_empty() {
    if (!connections_.empty()) return;
    look_timer_.cancel();
    if (stopping_) patience_timer_.cancel();
}

void IoThread::look_around() {
    looking_ = !connections_.empty();
    if (!looking_) return;
    look_timer_.expires_after(look_interval_);
    look_timer_.async_wait([this](boost::system::error_code) {
        const auto now = Clock::now();
        const std::vector<Watched*> open(connections_.begin(), connections_.end());
        for (Watched* connection : open) connection->look(now);
        look_around();
    });
}

}  // namespace goblin::lab
