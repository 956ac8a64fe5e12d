// Certificates made for tests: a fresh key, self-signed, with dates and names as wanted.
#pragma once

#include <QSslCertificate>
#include <QSslKey>

#include "core/work/digest.hpp"

namespace goblin::test {

struct Certificate {
    QSslCertificate certificate;
    QList<QSslCertificate> older;  // shown after it
    QSslKey key;
    Digest key_digest;  // SHA-256 of the SubjectPublicKeyInfo, computed apart from the worker's own code
};

// Valid from `begin_days` until `end_days` from now.
Certificate make_certificate(int begin_days = -1, int end_days = 365);
// A fresh key's, signed with the key of `old`, which it shows after itself.
Certificate make_successor(const Certificate& old);

}  // namespace goblin::test
