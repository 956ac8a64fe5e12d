// Digests: SHA-256 trees over tensors, plain (names of blobs) and keyed (commitments of contributors).
//
//   leaf = SHA-256(0 ‖ key ‖ u64 index ‖ u64 length ‖ bytes) over leaves of 1 MiB; an empty tensor has one
//   empty leaf node = SHA-256(1 ‖ left ‖ right), an odd one is promoted unchanged root = SHA-256(2 ‖ key ‖ u8
//   dtype ‖ u8 rank ‖ u64 dims… ‖ top)
//
// The key is empty or 32 bytes; integers are little-endian. Leaves can be hashed by several threads and
// checked as they arrive; dtype and shape are part of the root, so equal bytes of another shape have another
// digest.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.hpp"

namespace goblin {

inline constexpr uint64_t leaf_size_bytes = uint64_t{1} << 20;

struct Digest {
    std::array<uint8_t, 32> bytes{};
    friend auto operator<=>(const Digest&, const Digest&) = default;
    std::string hex() const;
    static std::optional<Digest> from_hex(std::string_view text);
};

struct DigestHash {
    size_t operator()(const Digest& digest) const;
};

// Empty, or the 32 secret bytes of an assignment.
using DigestKey = std::span<const uint8_t>;

Digest sha256(std::span<const uint8_t> bytes);

uint64_t leaf_count(uint64_t size_bytes);
Digest leaf_digest(DigestKey key, uint64_t index, std::span<const std::byte> bytes);
// The root over leaves in order. As many leaves as leaf_count(spec.size_bytes()).
Digest root_digest(DigestKey key, const TensorSpec& spec, std::span<const Digest> leaves);
Digest tensor_digest(DigestKey key, const TensorSpec& spec, std::span<const std::byte> bytes);
inline Digest tensor_digest(DigestKey key, const Tensor& tensor) {
    return tensor_digest(key, tensor.spec(), tensor.bytes());
}

// Collects bytes in order, in pieces of any length, and gives the digest at the end: for streams and file
// slices.
class DigestStream {
  public:
    DigestStream(DigestKey key, const TensorSpec& spec);
    // Throws ErrorKind::input when more arrives than the spec holds.
    void add(std::span<const std::byte> bytes);
    // Throws ErrorKind::input when less has arrived than the spec holds.
    Digest finish();

  private:
    void close_leaf(std::span<const std::byte> bytes);

    std::vector<uint8_t> key_;
    TensorSpec spec_;
    uint64_t remaining_bytes_;
    std::vector<std::byte> pending_;
    std::vector<Digest> leaves_;
};

}  // namespace goblin
