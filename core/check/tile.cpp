// Threads of a check: the first exception stops the others and is thrown where the loop was started.
#include "core/check/tile.hpp"

#include <atomic>
#include <exception>
#include <mutex>

#include "core/error.hpp"

namespace goblin {

void CheckThreads::for_each(int64_t count, const std::stop_token& stop, const Body& body) {
    std::atomic<bool> ended{false};
    std::mutex mutex;
    std::exception_ptr first;
    pool_.for_each(count, [&](int64_t item, unsigned thread) noexcept {
        if (ended || stop.stop_requested()) return;
        try {
            body(item, thread);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!first) first = std::current_exception();
            ended = true;
        }
    });
    if (first) std::rethrow_exception(first);
    if (stop.stop_requested())
        throw Error(ErrorKind::cancelled, "the product check was stopped before it was done");
}

}  // namespace goblin
