// Escapes text from outside for a log's line.
#include "labcli/log/log_sink.hpp"

#include <fmt/format.h>

namespace goblin::lab {

std::string escaped(std::string_view text) {
    constexpr size_t longest = 256;
    std::string safe;
    for (const char c : text.substr(0, longest)) {
        const bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
        if (plain)
            safe.push_back(c);
        else
            safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    if (text.size() > longest) safe += "...";
    return safe;
}

}  // namespace goblin::lab
