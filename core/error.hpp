// The one exception type of the project: what went wrong, as a kind that programs act on and a text for
// people.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace goblin {

enum class ErrorKind {
    usage,      // the caller asked for something that makes no sense; exit code 2
    input,      // a file or message is not what it should be
    io,         // the system refused a read or a write
    memory,     // a limit on memory would be exceeded
    cancelled,  // somebody asked to stop
    numeric,    // an engine cannot compute this
    network,    // no connection, or the peer broke the protocol
    denied,     // the peer is not allowed to do this
    failed,     // a job failed
};

// Messages start lower case, end without a full stop, and say what was expected, what was found and what to
// do next.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind error_kind, const std::string& message)
        : std::runtime_error(message), kind_(error_kind) {}

    template <typename... Args>
    Error(ErrorKind error_kind, fmt::format_string<Args...> format, Args&&... args)
        : Error(error_kind, fmt::format(format, std::forward<Args>(args)...)) {}

    ErrorKind kind() const { return kind_; }

  private:
    ErrorKind kind_;
};

}  // namespace goblin
