// An answer that is given exactly once, whatever becomes of the turn that owes it.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "labcli/records/answer.hpp"

namespace goblin::lab {

// Passes the first answer on. When the last copy goes unanswered, because its turn threw or was dropped, the
// answer is 500: the contributor needn't wait until nobody expects anything any more.
template <typename Reply>
Done<Reply> answered_once(Done<Reply> done) {
    struct Owed {
        explicit Owed(Done<Reply> to) : done(std::move(to)) {}
        ~Owed() {
            try {
                give(Refusal{500, {"failed", "the lab node could not answer; its log says why"}, 1'000});
            } catch (const std::exception&) {
                // Nobody can be told: the contributor's connection ends by its own limits.
            }
        }
        Owed(const Owed&) = delete;
        Owed& operator=(const Owed&) = delete;
        void give(Answer<Reply> answer) {
            if (!given.exchange(true)) done(std::move(answer));
        }
        Done<Reply> done;
        std::atomic<bool> given = false;
    };
    return [owed = std::make_shared<Owed>(std::move(done))](Answer<Reply> answer) {
        owed->give(std::move(answer));
    };
}

}  // namespace goblin::lab
