// Makes certificates with OpenSSL.
#include "tests/unit/worker/certificate.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace goblin::test {

namespace {

std::string text_of(BIO* memory) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    return {data, static_cast<size_t>(size)};
}

using Memory = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
Memory make_memory() {
    return {BIO_new(BIO_s_mem()), &BIO_free_all};
}

Certificate make(int begin_days, int end_days, const QSslKey* signing_key) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), &X509_free);
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    constexpr long day_s = 86'400;
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), begin_days * day_s);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), end_days * day_s);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(x509.get());
    const auto* common_name = reinterpret_cast<const unsigned char*>("a lab of a test");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> other(nullptr, &EVP_PKEY_free);
    if (signing_key != nullptr) {
        const QByteArray pem = signing_key->toPem();
        const Memory text(BIO_new_mem_buf(pem.constData(), static_cast<int>(pem.size())), &BIO_free_all);
        other.reset(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr));
    }
    if (X509_sign(x509.get(), other ? other.get() : key.get(), EVP_sha256()) == 0)
        throw std::runtime_error("OpenSSL signs no certificate");

    const Memory certificate_pem = make_memory();
    PEM_write_bio_X509(certificate_pem.get(), x509.get());
    const Memory key_pem = make_memory();
    PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    unsigned char* public_der = nullptr;
    const int public_size = i2d_PUBKEY(key.get(), &public_der);

    Certificate made;
    made.certificate = QSslCertificate(QByteArray::fromStdString(text_of(certificate_pem.get())));
    made.key = QSslKey(QByteArray::fromStdString(text_of(key_pem.get())), QSsl::Ec);
    made.key_digest = sha256({public_der, static_cast<size_t>(public_size)});
    OPENSSL_free(public_der);
    return made;
}

}  // namespace

Certificate make_certificate(int begin_days, int end_days) {
    return make(begin_days, end_days, nullptr);
}

Certificate make_successor(const Certificate& old) {
    Certificate made = make(-1, 365, &old.key);
    made.older = QList<QSslCertificate>{old.certificate} + old.older;
    return made;
}

}  // namespace goblin::test
