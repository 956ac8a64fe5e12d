// Peer: where a contributor's request comes from.
#pragma once

#include <string>

namespace goblin::lab {

struct Peer {
    std::string address;  // textual, without port; an IPv4-mapped IPv6 address as IPv4
    bool loopback = false;
};

}  // namespace goblin::lab
