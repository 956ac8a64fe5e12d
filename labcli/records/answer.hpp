// Answers to contributors: what was asked for, or a refusal.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>

#include "core/work/exchange.hpp"

namespace goblin::lab {

// Answered as an HTTP status and an ErrorReply.
struct Refusal {
    int status = 400;
    ErrorReply error;
    uint64_t retry_after_ms = 0;  // 0: not said
};

template <typename T>
using Answer = std::variant<T, Refusal>;
template <typename T>
using Done = std::function<void(Answer<T>)>;

}  // namespace goblin::lab
