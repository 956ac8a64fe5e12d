// What a lab node's refusals mean to a contributor, and what its owner can do: one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "app/worker/http_message.hpp"

namespace goblin::worker {

enum class RefusalAction {
    try_again,     // trouble that passes
    wait_for_lab,  // a person at the lab must act; asked again now and then
    update,        // the versions differ; asked again hourly
    forget,        // the credential is worth nothing any more: no more requests
    stop,          // no more requests to this lab
    drop_blob,     // this blob isn't for us (any more)
};

struct LabRefusal {
    int status = 0;
    std::string code;     // the lab's word for programs
    std::string message;  // the lab's word for people, as plain text
    uint64_t retry_after_ms = 0;
    RefusalAction action = RefusalAction::try_again;

    // In one line: what the lab said and what to do next.
    std::string text() const;
};

// `body` is an ErrorReply, or whatever stands in its place.
LabRefusal refusal_of(const ResponseHead& head, std::span<const uint8_t> body);

}  // namespace goblin::worker
