// Invitation links: goblin://host:port/#key.token. The key is the SHA-256 of the lab's public key, the token
// secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/work/digest.hpp"

namespace goblin {

inline constexpr uint16_t default_port = 7410;

struct InvitationLink {
    std::string host;  // a name or an address; an IPv6 address without brackets
    uint16_t port = default_port;
    Digest lab_key;
    std::vector<uint8_t> token;  // 16 bytes

    // Throws ErrorKind::usage saying what part of the link is not as expected. Strict: one way to write a
    // link.
    static InvitationLink parse(std::string_view text);
    std::string text() const;
    friend bool operator==(const InvitationLink&, const InvitationLink&) = default;
};

// "host:port", "[address]:port"; the port may be missing. Throws ErrorKind::usage.
struct HostPort {
    std::string host;
    uint16_t port = default_port;
    static HostPort parse(std::string_view text, uint16_t port_if_missing);
    std::string text() const;
};

}  // namespace goblin
