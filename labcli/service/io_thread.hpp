// One thread that runs connections: an Asio context of its own, so that nothing on it needs a lock. Other
// threads reach it through its mailbox; a periodic look ends connections past their deadline.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "labcli/log/log_sink.hpp"

namespace goblin::lab {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Takes functions to run on an I/O thread, from any thread, also after that thread has ended: then it drops
// them.
class Mailbox {
  public:
    explicit Mailbox(asio::io_context& context) : context_(&context) {}
    template <typename Function>
    void post(Function&& function) {
        const std::lock_guard lock(mutex_);
        if (context_) asio::post(*context_, std::forward<Function>(function));
    }
    void close() {
        const std::lock_guard lock(mutex_);
        context_ = nullptr;
    }

  private:
    std::mutex mutex_;
    asio::io_context* context_;
};

// A connection as its thread sees it.
class Watched {
  public:
    virtual ~Watched() = default;
    // Ends what is past its deadline.
    virtual void look(Clock::time_point now) = 0;
    // The service stops: end, unless a request has arrived whole; then end after its reply.
    virtual void wind_down() = 0;
    virtual void end_now() = 0;
    // Since when it waits for its peer to ask something; nothing while a request is under way.
    virtual std::optional<Clock::time_point> idle_since() const = 0;
};

class IoThread {
  public:
    IoThread(std::chrono::milliseconds look_interval, LogSink log);
    ~IoThread();
    IoThread(const IoThread&) = delete;
    IoThread& operator=(const IoThread&) = delete;

    asio::io_context& context() { return context_; }
    const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }
    void start();
    // Winds connections down and after `patience` ends those that are left. From any thread.
    void begin_stop(std::chrono::milliseconds patience);
    // Returns when the last connection has ended.
    void join();

    // On this thread.
    void add(Watched& connection);
    void remove(Watched& connection);
    // Makes room for others.
    void end_longest_idle();

  private:
    void run();
    void look_around();
    void end_if_empty();

    asio::io_context context_{1};
    std::shared_ptr<Mailbox> mailbox_;
    std::chrono::milliseconds look_interval_;
    LogSink log_;
    asio::steady_timer look_timer_;
    asio::steady_timer patience_timer_;
    bool looking_ = false;
    bool stopping_ = false;
    std::unordered_set<Watched*> connections_;
    std::thread thread_;
};

}  // namespace goblin::lab
