// SHA-256 of several messages at once, one in each lane of a vector: what one message leaves idle, others
// use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace goblin {

inline constexpr size_t sha256_block_bytes = 64;
inline constexpr size_t sha256_most_lanes = 16;

// FIPS 180-4's hash value H of each message, word by word: state[word][message].
using Sha256Lanes = std::array<std::array<uint32_t, sha256_most_lanes>, 8>;

// H(0) in every lane.
Sha256Lanes sha256_lanes_start();

// Takes `count` further blocks of 64 bytes of each message, which start at messages[lane]; all 16 are given.
void sha256_lanes_add(Sha256Lanes& state, std::span<const std::byte* const, sha256_most_lanes> messages,
                      size_t count);

// Whether this processor hashes 16 messages in lanes faster than one by one: with vectors of 16 words.
// Narrower ones are slower than a processor's own SHA-256 instructions.
bool sha256_lanes_pay();

}  // namespace goblin
