// ExchangeTurns: each computer has one exchange at a time on the lab's thread; its next ones wait for that.
// So one that sends many at once keeps nobody waiting for longer than one of them takes.
#pragma once

#include <cstddef>
#include <cstdint>
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

    // `offer` puts a turn at the end of the lab thread's queue, or says false when that is full; `post` puts
    // one there in any case, in the place of one that has just left it.
    ExchangeTurns(std::function<bool(Turn)> offer, std::function<void(Turn)> post)
        : offer_(std::move(offer)), post_(std::move(post)) {}

    enum class Entry : uint8_t { taken, too_many_of_one, too_many };
    // From any thread. `who` names the computer. Unless it is taken, the turn is dropped. A turn may throw.
    Entry enter(const Digest& who, Turn turn);
    // Drops what waits, and everything that comes later.
    void close();

  private:
    Turn followed(const Digest& who, Turn turn);
    void next(const Digest& who);

    std::function<bool(Turn)> offer_;
    std::function<void(Turn)> post_;
    std::mutex mutex_;
    // Those behind the one that is posted; who has none posted has no entry.
    std::unordered_map<Digest, std::deque<Turn>, DigestHash> waiting_;
    bool closed_ = false;
};

}  // namespace goblin::lab
