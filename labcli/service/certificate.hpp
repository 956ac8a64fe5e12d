// The lab's key and certificates: what contributors pin. A key is made once; a new one is signed by the old
// one, so that contributors follow it.
#pragma once

#include <filesystem>
#include <string>

#include "core/work/digest.hpp"

namespace goblin::lab {

struct LabCertificate {
    std::string key_pem;          // secret
    std::string certificate_pem;  // a chain, newest first; each is signed with the key of the next one
    Digest key;                   // SHA-256 of the SubjectPublicKeyInfo, as in an invitation link
    uint64_t keys = 1;            // that the lab has had with this one: the certificates of the chain
};

// Makes a P-256 key (mode 0600) and a self-signed certificate without a date of expiry, safe on disk when it
// returns. Throws ErrorKind::io, also when one of the files exists: a new key would lock out every
// contributor.
LabCertificate make_certificate(const std::filesystem::path& key_file,
                                const std::filesystem::path& certificate_file);

// Ends a change of keys that was cut off: what was half done is undone or completed. Throws ErrorKind::io
// when a file cannot be read or the key is readable by others, ErrorKind::input when they aren't a P-256 key
// and its chain of certificates. Nobody else may use the files meanwhile.
LabCertificate load_certificate(const std::filesystem::path& key_file,
                                const std::filesystem::path& certificate_file);

// Makes a new key, whose certificate is signed with the one there, and puts both in their places; the old key
// is gone then. A crash at any moment leaves what load_certificate() makes the old or the new state of.
// Throws as that does, and ErrorKind::failed when contributors would follow no further key.
LabCertificate renew_certificate(const std::filesystem::path& key_file,
                                 const std::filesystem::path& certificate_file);

}  // namespace goblin::lab
