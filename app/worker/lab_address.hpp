// Where a lab node is, and the key by which the lab is known here.
#pragma once

#include "core/work/link.hpp"

namespace goblin::worker {

struct LabAddress {
    std::string host;
    uint16_t port = default_port;
    // SHA-256 of the public key (SubjectPublicKeyInfo) that the lab had when it was joined: its name in this
    // worker's directory. Which key it must show now is LabPin's matter.
    Digest key;

    std::string text() const { return HostPort{host, port}.text(); }
};

}  // namespace goblin::worker
