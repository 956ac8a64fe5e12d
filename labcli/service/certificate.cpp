// Makes, saves and loads the lab's key and certificate, on OpenSSL.
#include "labcli/service/certificate.hpp"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "core/work/identity.hpp"

namespace goblin::lab {

namespace {

namespace fs = std::filesystem;

struct FreeOpenSsl {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;
using Certificate = std::unique_ptr<X509, FreeOpenSsl>;
using Bio = std::unique_ptr<BIO, FreeOpenSsl>;

struct File {
    int descriptor;
    explicit File(int opened) : descriptor(opened) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor >= 0) close(descriptor);
    }
};

constexpr size_t largest_pem_bytes = size_t{64} << 10;

void expect_done(bool done, std::string_view what) {
    if (!done)
        throw Error(ErrorKind::failed, "expected OpenSSL to {}, found it failing; check the system's OpenSSL",
                    what);
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<size_t>(size)};
}

// From long ago, because the contributor's clock may be wrong, to RFC 5280's date for "no expiry"
// (section 4.1.2.5).
void set_dates(X509* certificate) {
    expect_done(ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "20000101000000Z") == 1 &&
                    ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "99991231235959Z") == 1,
                "set a certificate's dates");
}

Certificate self_signed(EVP_PKEY* key) {
    Certificate certificate(X509_new());
    expect_done(certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1,
                "make a certificate");
    auto serial = random_bytes<std::array<uint8_t, 8>>();
    uint64_t number = 0;
    std::memcpy(&number, serial.data(), sizeof number);
    expect_done(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), number >> 1) == 1,
                "number a certificate");
    set_dates(certificate.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    const auto* text = reinterpret_cast<const unsigned char*>("GPU Goblin lab");
    expect_done(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(certificate.get(), name) == 1 &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    X509_sign(certificate.get(), key, EVP_sha256()) > 0,
                "sign a certificate");
    return certificate;
}

Digest public_key_digest(EVP_PKEY* key) {
    unsigned char* encoded = nullptr;
    const int size = i2d_PUBKEY(key, &encoded);
    expect_done(size > 0, "encode a public key");
    const Digest digest = sha256({encoded, static_cast<size_t>(size)});
    OPENSSL_free(encoded);
    return digest;
}

void sync_directory(const fs::path& file) {
    const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const File opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.descriptor < 0 || fsync(opened.descriptor) != 0)
        throw Error(ErrorKind::io, "expected to save the directory {}, found: {}", directory.string(),
                    strerror(errno));
}

void write_new_file(const fs::path& path, const std::string& text, mode_t mode) {
    const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.descriptor < 0 && errno == EEXIST)
        throw Error(ErrorKind::io,
                    "expected no file {}, found one: a lab keeps its key for life; choose another directory",
                    path.string());
    const bool written =
        file.descriptor >= 0 && fchmod(file.descriptor, mode) == 0 &&
        write(file.descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        fsync(file.descriptor) == 0;
    if (!written) {
        const int reason = errno;
        if (file.descriptor >= 0) unlink(path.c_str());
        throw Error(ErrorKind::io, "expected to write {}, found: {}", path.string(), strerror(reason));
    }
    sync_directory(path);
}

std::string read_file(const fs::path& path, mode_t forbidden) {
    const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
        throw Error(ErrorKind::io, "expected to read {}, found: {}; a lab is made by goblin-lab init",
                    path.string(), strerror(errno));
    if ((status.st_mode & forbidden) != 0)
        throw Error(ErrorKind::io,
                    "expected {} to be readable by its owner alone, found mode {:o}; run chmod 600 on it",
                    path.string(), status.st_mode & 0777);
    std::string text(largest_pem_bytes, '\0');
    const ssize_t size = read(file.descriptor, text.data(), text.size());
    if (size < 0)
        throw Error(ErrorKind::io, "expected to read {}, found: {}", path.string(), strerror(errno));
    text.resize(static_cast<size_t>(size));
    return text;
}

}  // namespace

LabCertificate make_certificate(const fs::path& key_file, const fs::path& certificate_file) {
    const Key key(EVP_EC_gen("P-256"));
    expect_done(key != nullptr, "make a P-256 key");
    const Certificate certificate = self_signed(key.get());
    const Bio key_text(BIO_new(BIO_s_secmem()));
    const Bio certificate_text(BIO_new(BIO_s_mem()));
    expect_done(
        key_text && certificate_text &&
            PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
            PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1,
        "write a key as PEM");
    LabCertificate made{text_of(key_text.get()), text_of(certificate_text.get()),
                        public_key_digest(key.get())};
    write_new_file(certificate_file, made.certificate_pem, 0644);
    try {
        write_new_file(key_file, made.key_pem, 0600);
    } catch (const Error&) {
        unlink(certificate_file.c_str());
        throw;
    }
    return made;
}

LabCertificate load_certificate(const fs::path& key_file, const fs::path& certificate_file) {
    LabCertificate loaded{read_file(key_file, 0077), read_file(certificate_file, 0), {}};
    const Bio key_text(BIO_new_mem_buf(loaded.key_pem.data(), static_cast<int>(loaded.key_pem.size())));
    const Bio certificate_text(
        BIO_new_mem_buf(loaded.certificate_pem.data(), static_cast<int>(loaded.certificate_pem.size())));
    expect_done(key_text && certificate_text, "take memory");
    const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
    std::array<char, 32> group{};
    const bool is_p256 = key &&
                         EVP_PKEY_get_group_name(key.get(), group.data(), group.size(), nullptr) == 1 &&
                         std::string_view(group.data()) == "prime256v1";
    if (!is_p256)
        throw Error(ErrorKind::input,
                    "expected a P-256 key in {}, found something else; restore the lab's key from a backup",
                    key_file.string());
    const Certificate certificate(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
    if (!certificate || X509_check_private_key(certificate.get(), key.get()) != 1)
        throw Error(
            ErrorKind::input,
            "expected the certificate of the key {} in {}, found something else; restore both from a backup",
            key_file.string(), certificate_file.string());
    loaded.key = public_key_digest(key.get());
    return loaded;
}

}  // namespace goblin::lab
