// Reads the versions of a message and says which side must be updated when they differ.
#include "core/work/exchange.hpp"

namespace goblin {

std::string version_mismatch(const Versions& peer, std::string_view peer_role, std::string_view our_role) {
    const Versions ours;
    const auto explain = [&](std::string_view what, uint64_t theirs, uint64_t mine) {
        return fmt::format("expected {} version {}, found {} at the {}: update the {}", what, mine, theirs,
                           peer_role, theirs < mine ? peer_role : our_role);
    };
    if (peer.protocol != ours.protocol) return explain("protocol", peer.protocol, ours.protocol);
    if (peer.contract != ours.contract) return explain("arithmetic contract", peer.contract, ours.contract);
    return {};
}

Versions leading_versions(std::span<const uint8_t> message) {
    CborReader reader(message);
    const auto expect_field = [&](std::string_view name) {
        if (reader.text(limits::name_characters) != name)
            throw Error(ErrorKind::input, "message: expected the field '{}' first, found another", name);
    };
    reader.map(limits::name_characters);
    expect_field("versions");
    reader.map(limits::name_characters);
    Versions versions;
    expect_field("protocol");
    versions.protocol = reader.integer();
    expect_field("contract");
    versions.contract = reader.integer();
    return versions;
}

}  // namespace goblin
