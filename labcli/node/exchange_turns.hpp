// ExchangeTurns: each computer has one exchange at a time on the lab's thread; its next ones wait for that.
// So one that sends many at once keeps nobody waiting for longer than one of them takes.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "core/work/digest.hpp"

namespace goblin::lab {

class ExchangeTurns {
  public:
    using Turn = std::function<void()>;
    // A worker has one that speaks and one that waits, and may have lost as many connections.
    static constexpr size_t most_at_once = 4;

    // `post` puts a turn at the end of the lab thread's queue.
    explicit ExchangeTurns(std::function<void(Turn)> post) : post_(std::move(post)) {}

    // From any thread. `who` names the computer. False, and the turn is dropped, when it has most_at_once
    // there already. A turn may throw.
    bool enter(const Digest& who, Turn turn);
    // Drops what waits, and everything that comes later.
    void close();

  private:
    void post(const Digest& who, Turn turn);
    void next(const Digest& who);

    std::function<void(Turn)> post_;
    std::mutex mutex_;
    // Those behind the one that is posted; who has none posted has no entry.
    std::unordered_map<Digest, std::deque<Turn>, DigestHash> waiting_;
    bool closed_ = false;
};

}  // namespace goblin::lab
