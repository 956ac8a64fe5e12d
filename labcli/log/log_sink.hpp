// Where parts of the lab node send what happens, without knowing who keeps it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace goblin::lab {

enum class LogLevel : uint8_t { debug, info, warning, error };

// Called from any thread; must not throw.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Text from outside made safe for a log's line: control characters, quotes, backslashes and everything that
// isn't ASCII become \xHH; what is longer than 256 bytes is cut.
std::string escaped(std::string_view text);

}  // namespace goblin::lab
