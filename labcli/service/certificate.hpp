// The lab's key and certificate: what contributors pin, so it is made once and lives as long as the lab.
#pragma once

#include <filesystem>
#include <string>

#include "core/work/digest.hpp"

namespace goblin::lab {

struct LabCertificate {
    std::string key_pem;  // secret
    std::string certificate_pem;
    Digest key;  // SHA-256 of the SubjectPublicKeyInfo, as in an invitation link
};

// Makes a P-256 key (mode 0600) and a self-signed certificate without a date of expiry, safe on disk when it
// returns. Throws ErrorKind::io, also when one of the files exists: a new key would lock out every
// contributor.
LabCertificate make_certificate(const std::filesystem::path& key_file,
                                const std::filesystem::path& certificate_file);

// Throws ErrorKind::io when a file cannot be read or the key is readable by others, ErrorKind::input when
// they aren't a P-256 key and its certificate.
LabCertificate load_certificate(const std::filesystem::path& key_file,
                                const std::filesystem::path& certificate_file);

}  // namespace goblin::lab
