// Makes, saves, loads and changes the lab's key and certificates, on OpenSSL.
#include "labcli/service/certificate.hpp"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "core/work/key_chain.hpp"
#include "core/work/limits.hpp"

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
using Chain = std::vector<Certificate>;

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

// For the key, named after how many came before it; signed with `signing_key`, whose certificate is `issuer`:
// its own when it is null.
Certificate certificate_for(EVP_PKEY* key, size_t older_keys, const X509* issuer, EVP_PKEY* signing_key) {
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
    const std::string text =
        older_keys == 0 ? "GPU Goblin lab" : fmt::format("GPU Goblin lab, key {}", older_keys + 1);
    expect_done(
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0) == 1 &&
            X509_set_issuer_name(certificate.get(), issuer ? X509_get_subject_name(issuer) : name) == 1 &&
            X509_set_pubkey(certificate.get(), key) == 1 &&
            X509_sign(certificate.get(), signing_key, EVP_sha256()) > 0,
        "sign a certificate");
    return certificate;
}

Key new_key() {
    Key key(EVP_EC_gen("P-256"));
    expect_done(key != nullptr, "make a P-256 key");
    return key;
}

std::string pem_of(EVP_PKEY* key) {
    const Bio text(BIO_new(BIO_s_secmem()));
    expect_done(text && PEM_write_bio_PrivateKey(text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
                "write a key as PEM");
    return text_of(text.get());
}

std::string pem_of(X509* certificate) {
    const Bio text(BIO_new(BIO_s_mem()));
    expect_done(text && PEM_write_bio_X509(text.get(), certificate) == 1, "write a certificate as PEM");
    return text_of(text.get());
}

Key key_from(const std::string& pem) {
    const Bio text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    expect_done(text != nullptr, "take memory");
    return Key(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr));
}

Chain chain_from(const std::string& pem) {
    const Bio text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    expect_done(text != nullptr, "take memory");
    Chain chain;
    while (chain.size() <= limits::lab_keys) {
        Certificate next(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
        if (!next) break;
        chain.push_back(std::move(next));
    }
    ERR_clear_error();  // the end of the text is one to OpenSSL
    return chain;
}

// Whether each certificate is signed with the key of the next one, as contributors check it.
bool is_whole(const Chain& chain) {
    std::vector<std::vector<uint8_t>> certificates;
    for (const Certificate& certificate : chain) {
        unsigned char* encoded = nullptr;
        const int size = i2d_X509(certificate.get(), &encoded);
        expect_done(size > 0, "encode a certificate");
        certificates.emplace_back(encoded, encoded + size);
        OPENSSL_free(encoded);
    }
    return !chain.empty() && followed_keys(certificates).size() == chain.size();
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
                    "expected no file {}, found one: a lab has a key there; choose another directory",
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

void move_into_place(const fs::path& from, const fs::path& to) {
    if (rename(from.c_str(), to.c_str()) != 0)
        throw Error(ErrorKind::io, "expected to write {}, found: {}", to.string(), strerror(errno));
    sync_directory(to);
}

// What a change of keys writes before it counts.
fs::path fresh(fs::path file) {
    return file += ".new";
}

bool is_p256(EVP_PKEY* key) {
    std::array<char, 32> group{};
    return key != nullptr && EVP_PKEY_get_group_name(key, group.data(), group.size(), nullptr) == 1 &&
           std::string_view(group.data()) == "prime256v1";
}

bool belongs(const Chain& chain, EVP_PKEY* key) {
    const bool right =
        key != nullptr && !chain.empty() && X509_check_private_key(chain.front().get(), key) == 1;
    ERR_clear_error();
    return right;
}

// Once the certificates are in their place the new key counts, and follows; until then the old one does, and
// what was written is rubbish.
void settle(const fs::path& key_file, const fs::path& certificate_file) {
    if (fs::exists(fresh(key_file))) {
        const Chain chain = chain_from(read_file(certificate_file, 0));
        const bool old_counts = belongs(chain, key_from(read_file(key_file, 0077)).get());
        if (!old_counts && belongs(chain, key_from(read_file(fresh(key_file), 0077)).get()))
            return move_into_place(fresh(key_file), key_file);
        if (!old_counts) return;  // neither: load_certificate() says what is wrong
    }
    unlink(fresh(certificate_file).c_str());
    unlink(fresh(key_file).c_str());
}

}  // namespace

LabCertificate make_certificate(const fs::path& key_file, const fs::path& certificate_file) {
    const Key key = new_key();
    const Certificate certificate = certificate_for(key.get(), 0, nullptr, key.get());
    LabCertificate made{pem_of(key.get()), pem_of(certificate.get()), public_key_digest(key.get()), 1};
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
    settle(key_file, certificate_file);
    LabCertificate loaded{read_file(key_file, 0077), read_file(certificate_file, 0), {}, 0};
    const Key key = key_from(loaded.key_pem);
    if (!is_p256(key.get()))
        throw Error(ErrorKind::input,
                    "expected a P-256 key in {}, found something else; restore the lab's key from a backup",
                    key_file.string());
    const Chain chain = chain_from(loaded.certificate_pem);
    if (!belongs(chain, key.get()) || !is_whole(chain))
        throw Error(
            ErrorKind::input,
            "expected the certificate of the key {} in {}, found something else; restore both from a backup",
            key_file.string(), certificate_file.string());
    loaded.key = public_key_digest(key.get());
    loaded.keys = chain.size();
    return loaded;
}

LabCertificate renew_certificate(const fs::path& key_file, const fs::path& certificate_file) {
    const LabCertificate old = load_certificate(key_file, certificate_file);
    if (old.keys >= limits::lab_keys)
        throw Error(
            ErrorKind::failed,
            "expected a lab with fewer than {} keys so far, found {}: contributors follow no more; make a "
            "new lab with `goblin-lab init DIR` and invite them again",
            limits::lab_keys, old.keys);
    const Key key = new_key();
    const Certificate certificate = certificate_for(
        key.get(), old.keys, chain_from(old.certificate_pem).front().get(), key_from(old.key_pem).get());
    const LabCertificate made{pem_of(key.get()), pem_of(certificate.get()) + old.certificate_pem,
                              public_key_digest(key.get()), old.keys + 1};
    write_new_file(fresh(key_file), made.key_pem, 0600);
    write_new_file(fresh(certificate_file), made.certificate_pem, 0644);
    move_into_place(fresh(certificate_file), certificate_file);
    move_into_place(fresh(key_file), key_file);
    return made;
}

}  // namespace goblin::lab
