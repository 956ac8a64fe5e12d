// Posts a computer's exchanges one by one.
#include "labcli/node/exchange_turns.hpp"

namespace goblin::lab {

ExchangeTurns::Entry ExchangeTurns::enter(const Digest& who, Turn turn) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Entry::taken;
    const auto [entry, first] = waiting_.try_emplace(who);
    std::deque<Turn>& behind = entry->second;
    if (!first) {
        if (1 + behind.size() >= most_at_once) return Entry::too_many_of_one;
        behind.push_back(std::move(turn));
        return Entry::taken;
    }
    // Under the lock: nobody gets behind one that isn't taken.
    if (offer_(followed(who, std::move(turn)))) return Entry::taken;
    waiting_.erase(entry);
    return Entry::too_many;
}

// The turn, and then this computer's next one, also when it throws.
ExchangeTurns::Turn ExchangeTurns::followed(const Digest& who, Turn turn) {
    return [this, who, turn = std::move(turn)] {
        struct Next {
            ExchangeTurns& turns;
            const Digest& who;
            ~Next() { turns.next(who); }
        } const next{*this, who};
        turn();
    };
}

void ExchangeTurns::next(const Digest& who) {
    Turn turn;
    {
        const std::lock_guard lock(mutex_);
        const auto entry = waiting_.find(who);
        if (entry == waiting_.end()) return;  // closed
        if (entry->second.empty()) {
            waiting_.erase(entry);
            return;
        }
        turn = std::move(entry->second.front());
        entry->second.pop_front();
    }
    post_(followed(who, std::move(turn)));
}

void ExchangeTurns::close() {
    std::unordered_map<Digest, std::deque<Turn>, DigestHash> dropped;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
}

}  // namespace goblin::lab
