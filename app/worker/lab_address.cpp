// Computes the digest of a certificate's public key.
#include "app/worker/lab_address.hpp"

#include <openssl/x509.h>

#include <QByteArray>
#include <memory>

namespace goblin::worker {

std::optional<Digest> public_key_digest(const QSslCertificate& certificate) {
    const QByteArray der = certificate.toDer();
    const auto* position = reinterpret_cast<const unsigned char*>(der.constData());
    const std::unique_ptr<X509, decltype(&X509_free)> parsed(d2i_X509(nullptr, &position, der.size()),
                                                             &X509_free);
    if (!parsed) return std::nullopt;
    unsigned char* encoded = nullptr;
    const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(parsed.get()), &encoded);
    if (size <= 0) return std::nullopt;
    const Digest digest = sha256({encoded, static_cast<size_t>(size)});
    OPENSSL_free(encoded);
    return digest;
}

}  // namespace goblin::worker
