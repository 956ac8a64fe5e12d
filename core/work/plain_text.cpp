// Escapes what a terminal could obey or an eye could miss.
#include "core/work/plain_text.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "core/work/cbor.hpp"
#include "core/work/limits.hpp"

namespace goblin {

namespace {

struct CharacterRange {
    uint32_t first;
    uint32_t last;
};

// Controls, invisible characters, direction marks, line separators, tags and private use.
constexpr CharacterRange hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},        {0x61c, 0x61c},   {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},    {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
    {0xfff0, 0xfffb}, {0xe000, 0xf8ff}, {0xe0000, 0x10ffff},
};

bool is_hidden(uint32_t character) {
    for (const CharacterRange& range : hidden)
        if (character >= range.first && character <= range.last) return true;
    return false;
}

size_t sequence_length(uint8_t lead) {
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

uint32_t decode(std::string_view sequence) {
    const auto lead = static_cast<uint8_t>(sequence[0]);
    if (sequence.size() == 1) return lead;
    uint32_t character = lead & (0x7fu >> sequence.size());
    for (size_t i = 1; i < sequence.size(); ++i)
        character = character << 6 | (static_cast<uint8_t>(sequence[i]) & 0x3fu);
    return character;
}

// Calls `take` with each character, and whether it may be shown as it is.
template <typename Take>
void each_character(std::string_view text, Take take) {
    while (!text.empty()) {
        const std::string_view sequence = text.substr(0, sequence_length(static_cast<uint8_t>(text[0])));
        const bool whole = is_utf8(sequence);
        const std::string_view character = whole ? sequence : text.substr(0, 1);
        if (!take(character, whole && !is_hidden(decode(sequence)))) return;
        text.remove_prefix(character.size());
    }
}

std::string escape_of(std::string_view character) {
    const bool whole = is_utf8(character);
    const uint32_t point = whole ? decode(character) : static_cast<uint8_t>(character[0]);
    return point < 0x100 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
}

}  // namespace

std::string plain_text(std::string_view text, size_t limit_bytes) {
    std::string plain;
    each_character(text, [&](std::string_view character, bool may_be_shown) {
        if (plain.size() >= limit_bytes) {
            plain += "…";
            return false;
        }
        plain += may_be_shown ? std::string(character) : escape_of(character);
        return true;
    });
    return plain;
}

std::string plain_lines(std::string_view text) {
    std::string plain;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        plain += plain_text(text.substr(0, end), SIZE_MAX) + "\n";
        text.remove_prefix(end + 1);
    }
    return plain + plain_text(text, SIZE_MAX);
}

bool is_plain(std::string_view text) {
    bool plain = true;
    each_character(text, [&](std::string_view, bool may_be_shown) { return plain = may_be_shown; });
    return plain;
}

std::string printable_name(std::string_view name) {
    std::string printable;
    uint64_t characters = 0;
    each_character(name, [&](std::string_view character, bool may_be_shown) {
        if (characters++ == limits::name_characters) return false;
        printable += may_be_shown ? character : "?";
        return true;
    });
    return printable.empty() ? "unnamed" : printable;
}

}  // namespace goblin
