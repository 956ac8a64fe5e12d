// What a lab or a file says, made harmless for a terminal, a log line or a label: plain text and nothing
// else.
#pragma once

#include <string>
#include <string_view>

namespace goblin {

inline constexpr size_t shown_text_bytes = 300;

// Control characters, what is no UTF-8, and characters that are invisible or turn the reading direction are
// written as escapes (\x1b, \u202e); longer text is cut after `limit_bytes`, with an ellipsis.
std::string plain_text(std::string_view text, size_t limit_bytes = shown_text_bytes);

// The same for what we print ourselves: line ends stay.
std::string plain_lines(std::string_view text);
// Whether plain_text() would leave it as it is, were it short enough.
bool is_plain(std::string_view text);

// At most limits::name_characters characters, with "?" for what may not be shown; "unnamed" for nothing.
// Never part of a path.
std::string printable_name(std::string_view name);

}  // namespace goblin
