// Posts a computer's exchanges one by one.
#include "labcli/node/exchange_turns.hpp"

namespace goblin::lab {

bool ExchangeTurns::enter(const Digest& who, Turn turn) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return true;
        const auto [entry, first] = waiting_.try_emplace(who);
        std::deque<Turn>& behind = entry->second;
        if (!first) {
            if (1 + behind.size() >= most_at_once) return false;
            behind.push_back(std::move(turn));
            return true;
        }
    }
    post(who, std::move(turn));
    return true;
}

void ExchangeTurns::post(const Digest& who, Turn turn) {
    post_([this, who, turn = std::move(turn)] {
        struct Next {
            ExchangeTurns& turns;
            const Digest& who;
            ~Next() { turns.next(who); }
        } const next{*this, who};
        turn();
    });
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
    post(who, std::move(turn));
}

void ExchangeTurns::close() {
    std::unordered_map<Digest, std::deque<Turn>, DigestHash> dropped;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
}

}  // namespace goblin::lab
