// What a lab or a file says, made harmless for a terminal, a log line or a label: plain text and nothing
// else.
#pragma once

#include <string>
#include <string_view>

namespace goblin::worker {

inline constexpr size_t shown_text_bytes = 300;

// Control characters, what is no UTF-8, and characters that are invisible or turn the reading direction are
// written as escapes (\x1b, \u202e); longer text is cut after `limit_bytes`, with an ellipsis.
std::string plain_text(std::string_view text, size_t limit_bytes = shown_text_bytes);

}  // namespace goblin::worker
