// Who a volunteer is to a lab: an Ed25519 key derived from the volunteer's seed and the lab's key.
//
// Each lab sees another key, so labs cannot link volunteers to each other. An enrolment signs the lab's key,
// the invitation's token and a nonce of the lab, so that it proves the key and fits one lab and one moment
// only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/work/digest.hpp"
#include "core/work/message_codec.hpp"

namespace goblin {

using VolunteerSeed = FixedBytes<32>;

// Bytes from the system's generator. Throws ErrorKind::failed when it has none.
void fill_random(std::span<uint8_t> bytes);
template <typename T>
T random_bytes() {
    T bytes{};
    fill_random(bytes);
    return bytes;
}

// 'goblin-enrol-1' ‖ lab key ‖ u8 token length ‖ token ‖ nonce
std::vector<uint8_t> enrolment_statement(const Digest& lab_key, std::span<const uint8_t> token,
                                         std::span<const uint8_t> nonce);

class VolunteerIdentity {
  public:
    // The Ed25519 seed is HMAC-SHA256(seed, 'goblin-volunteer-1' ‖ lab key).
    VolunteerIdentity(const VolunteerSeed& seed, const Digest& lab_key);

    const FixedBytes<32>& public_key() const { return public_key_; }
    FixedBytes<64> sign(std::span<const uint8_t> statement) const;

  private:
    FixedBytes<32> private_key_{};
    FixedBytes<32> public_key_{};
};

// What a lab knows this computer by: the first 16 bytes of HMAC-SHA256(seed, 'goblin-computer-1' ‖ lab key ‖
// computer). Another for each lab, for the same reason. `computer` is drawn once per worker's directory.
FixedBytes<16> computer_mark(const VolunteerSeed& seed, const Digest& lab_key,
                             const FixedBytes<16>& computer);

bool verify_signature(const FixedBytes<32>& public_key, std::span<const uint8_t> statement,
                      const FixedBytes<64>& signature);

Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message);
// In constant time, for secrets.
bool equal_secrets(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace goblin
