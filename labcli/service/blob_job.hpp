// Work of a request that may wait for a disk: started on a blob thread, awaited by the request's coroutine,
// which may be gone before it ends. So a job shares what it touches, its State, with the coroutine, and they
// take turns on it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "labcli/service/http_stream.hpp"
#include "labcli/threads/work_pool.hpp"

namespace goblin::lab {

struct BlobJobOutcome {
    std::exception_ptr error;
};
using BlobJob = Pending<BlobJobOutcome>;

// Refused while too many wait: those of requests that are gone, too.
template <typename State, typename Work>
BlobJob start_blob_job(WorkPool& threads, HttpStream& stream, std::shared_ptr<State> state, Work work) {
    auto job = stream.pending<BlobJobOutcome>();
    const bool taken =
        threads.offer([state = std::move(state), receiver = job.receiver(), work = std::move(work)] {
            BlobJobOutcome outcome;
            try {
                work(*state);
            } catch (...) {
                outcome.error = std::current_exception();
            }
            receiver(std::move(outcome));
        });
    if (!taken)
        throw refused(503, "busy", "expected a free blob thread, found too many requests; try again later",
                      1'000);
    return job;
}

// Throws what the job threw.
inline asio::awaitable<void> finish_blob_job(HttpStream& stream, BlobJob& job) {
    const BlobJobOutcome outcome = co_await stream.answer(job, false);
    if (outcome.error) std::rethrow_exception(outcome.error);
}

}  // namespace goblin::lab
