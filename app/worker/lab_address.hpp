// Where a lab node is and the one key that proves it is that lab.
#pragma once

#include <QSslCertificate>

#include "core/work/link.hpp"

namespace goblin::worker {

struct LabAddress {
    std::string host;
    uint16_t port = default_port;
    Digest key;  // SHA-256 of the lab's public key (SubjectPublicKeyInfo)

    std::string text() const { return HostPort{host, port}.text(); }
};

// SHA-256 of the certificate's SubjectPublicKeyInfo in DER; empty for what is no certificate.
std::optional<Digest> public_key_digest(const QSslCertificate& certificate);

}  // namespace goblin::worker
