// Key chain: how a lab shows that its key follows an older one. It is the chain of certificates of the TLS
// handshake, newest first, each signed with the key of the next one.
//
// Signatures are all that counts here. Dates, names, authorities and the last one's own signature don't.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/work/digest.hpp"

namespace goblin {

// SHA-256 of the certificate's SubjectPublicKeyInfo in DER; empty for what is no certificate.
std::optional<Digest> public_key_digest(std::span<const uint8_t> certificate_der);

// The first certificate's key, and the older ones that it provably follows: it ends where a signature is
// wrong, and after limits::lab_keys. Empty when the first is no certificate. Certificates are in DER.
std::vector<Digest> followed_keys(std::span<const std::vector<uint8_t>> chain);

}  // namespace goblin
