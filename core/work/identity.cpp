// Keys, signatures and secrets of volunteers, on OpenSSL.
#include "core/work/identity.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <string_view>

#include "core/error.hpp"

namespace goblin {

namespace {

struct FreeOpenSsl {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeOpenSsl>;

void expect_done(bool done, std::string_view what) {
    if (!done)
        throw Error(ErrorKind::failed, "expected OpenSSL to {}, found it failing; check the system's OpenSSL",
                    what);
}

void append(std::vector<uint8_t>& bytes, std::span<const uint8_t> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

void fill_random(std::span<uint8_t> bytes) {
    expect_done(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "give random bytes");
}

Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message) {
    Digest digest;
    unsigned int size = 0;
    expect_done(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), message.data(), message.size(),
                     digest.bytes.data(), &size) != nullptr,
                "compute HMAC-SHA256");
    assert(size == digest.bytes.size());
    return digest;
}

bool equal_secrets(std::span<const uint8_t> a, std::span<const uint8_t> b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::vector<uint8_t> enrolment_statement(const Digest& lab_key, std::span<const uint8_t> token,
                                         std::span<const uint8_t> nonce) {
    assert(token.size() < 256);
    std::vector<uint8_t> statement;
    append(statement, bytes_of("goblin-enrol-1"));
    append(statement, lab_key.bytes);
    statement.push_back(static_cast<uint8_t>(token.size()));
    append(statement, token);
    append(statement, nonce);
    return statement;
}

VolunteerIdentity::VolunteerIdentity(const VolunteerSeed& seed, const Digest& lab_key) {
    std::vector<uint8_t> purpose;
    append(purpose, bytes_of("goblin-volunteer-1"));
    append(purpose, lab_key.bytes);
    private_key_ = hmac_sha256(seed, purpose).bytes;
    const Key key(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, private_key_.data(), private_key_.size()));
    size_t size = public_key_.size();
    expect_done(key != nullptr && EVP_PKEY_get_raw_public_key(key.get(), public_key_.data(), &size) == 1,
                "derive an Ed25519 key");
}

FixedBytes<64> VolunteerIdentity::sign(std::span<const uint8_t> statement) const {
    const Key key(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, private_key_.data(), private_key_.size()));
    const Context context(EVP_MD_CTX_new());
    FixedBytes<64> signature{};
    size_t size = signature.size();
    expect_done(
        key && context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
            EVP_DigestSign(context.get(), signature.data(), &size, statement.data(), statement.size()) == 1,
        "sign with Ed25519");
    return signature;
}

FixedBytes<16> computer_mark(const VolunteerSeed& seed, const Digest& lab_key,
                             const FixedBytes<16>& computer) {
    std::vector<uint8_t> purpose;
    append(purpose, bytes_of("goblin-computer-1"));
    append(purpose, lab_key.bytes);
    append(purpose, computer);
    const Digest whole = hmac_sha256(seed, purpose);
    FixedBytes<16> mark{};
    std::copy_n(whole.bytes.begin(), mark.size(), mark.begin());
    return mark;
}

bool verify_signature(const FixedBytes<32>& public_key, std::span<const uint8_t> statement,
                      const FixedBytes<64>& signature) {
    const Key key(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, public_key.data(), public_key.size()));
    const Context context(EVP_MD_CTX_new());
    return key && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), signature.data(), signature.size(), statement.data(),
                            statement.size()) == 1;
}

}  // namespace goblin
