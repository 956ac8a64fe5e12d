// Verifies chains of certificates on OpenSSL.
#include "core/work/key_chain.hpp"

#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>

#include "core/work/limits.hpp"

namespace goblin {

namespace {

struct FreeCertificate {
    void operator()(X509* certificate) const { X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;

Certificate parsed(std::span<const uint8_t> der) {
    const unsigned char* position = der.data();
    Certificate certificate(d2i_X509(nullptr, &position, static_cast<long>(der.size())));
    ERR_clear_error();
    if (position != der.data() + der.size()) return nullptr;
    return certificate;
}

std::optional<Digest> key_of(X509* certificate) {
    unsigned char* encoded = nullptr;
    const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded);
    if (size <= 0) return std::nullopt;
    const Digest digest = sha256({encoded, static_cast<size_t>(size)});
    OPENSSL_free(encoded);
    return digest;
}

bool is_signed_by(X509* certificate, X509* older) {
    EVP_PKEY* const key = X509_get0_pubkey(older);
    const bool right = key != nullptr && X509_get_signature_nid(certificate) == NID_ecdsa_with_SHA256 &&
                       X509_verify(certificate, key) == 1;
    ERR_clear_error();
    return right;
}

}  // namespace

std::optional<Digest> public_key_digest(std::span<const uint8_t> certificate_der) {
    const Certificate certificate = parsed(certificate_der);
    return certificate ? key_of(certificate.get()) : std::nullopt;
}

std::vector<Digest> followed_keys(std::span<const std::vector<uint8_t>> chain) {
    std::vector<Digest> keys;
    Certificate newer;
    for (const std::vector<uint8_t>& der : chain.first(std::min<size_t>(chain.size(), limits::lab_keys))) {
        Certificate certificate = parsed(der);
        const std::optional<Digest> key = certificate ? key_of(certificate.get()) : std::nullopt;
        if (!key || (newer && !is_signed_by(newer.get(), certificate.get()))) break;
        keys.push_back(*key);
        newer = std::move(certificate);
    }
    return keys;
}

}  // namespace goblin
