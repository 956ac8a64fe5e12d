// A value that another thread will bring to a coroutine on an I/O thread, or that the coroutine gives up
// waiting for.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "labcli/service/io_thread.hpp"

namespace goblin::lab {

// Wakes one coroutine of the same thread.
class Wake {
  public:
    explicit Wake(asio::io_context& context) : timer_(context, Clock::time_point::max()) {}
    void notify() {
        notified_ = true;
        timer_.cancel();
    }
    asio::awaitable<void> wait() {
        boost::system::error_code cancelled;
        if (!notified_) co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        notified_ = false;
    }

  private:
    asio::steady_timer timer_;
    bool notified_ = false;
};

// The coroutine owns the Pending; what it hands out only points to it weakly, so a late value is dropped on
// the I/O thread without touching anything that has gone.
template <typename Value>
class Pending {
  public:
    Pending(Wake& wake, std::shared_ptr<Mailbox> mailbox)
        : slot_(std::make_shared<Slot>(wake)), mailbox_(std::move(mailbox)) {}

    // To be called once, on any thread.
    std::function<void(Value)> receiver() const {
        return [slot = std::weak_ptr<Slot>(slot_), mailbox = mailbox_](Value value) {
            mailbox->post([slot, value = std::move(value)]() mutable {
                const auto waiting = slot.lock();
                if (!waiting) return;
                assert(!waiting->value);
                waiting->value = std::move(value);
                waiting->wake.notify();
            });
        };
    }
    bool ready() const { return slot_->value.has_value(); }
    Value take() {
        assert(ready());
        return std::move(*slot_->value);
    }

  private:
    struct Slot {
        explicit Slot(Wake& to_wake) : wake(to_wake) {}
        Wake& wake;
        std::optional<Value> value;
    };
    std::shared_ptr<Slot> slot_;
    std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace goblin::lab
