// Escapes what a terminal could obey or an eye could miss.
#include "app/worker/plain_text.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "core/work/cbor.hpp"

namespace goblin::worker {

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

}  // namespace

std::string plain_text(std::string_view text, size_t limit_bytes) {
    std::string plain;
    size_t position = 0;
    while (position < text.size()) {
        if (plain.size() >= limit_bytes) return plain + "…";
        const std::string_view sequence =
            text.substr(position, sequence_length(static_cast<uint8_t>(text[position])));
        if (!is_utf8(sequence)) {
            plain += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[position]));
            ++position;
            continue;
        }
        const uint32_t character = decode(sequence);
        if (!is_hidden(character))
            plain += sequence;
        else if (character < 0x100)
            plain += fmt::format("\\x{:02x}", character);
        else
            plain += fmt::format("\\u{:04x}", character);
        position += sequence.size();
    }
    return plain;
}

}  // namespace goblin::worker
