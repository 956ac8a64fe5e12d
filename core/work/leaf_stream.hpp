// Leaf stream: how a blob's bytes travel, leaf by leaf, each packed with zstd where a sample says it helps.
//
//   leaf = u8 codec (0 raw, 1 zstd) ‖ u32 stored length, little-endian ‖ stored bytes
//
// A transfer can stop after any leaf and continue with the next. What a leaf unpacks to is known beforehand
// from the blob's size, so a decoder never takes more memory than one leaf and zstd's window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/work/digest.hpp"

namespace goblin {

uint64_t leaf_length(uint64_t size_bytes, uint64_t index);
// Of a blob's stream from a leaf on when no leaf is packed; no stream is longer.
uint64_t raw_stream_bytes(uint64_t size_bytes, uint64_t first_leaf);

// Whether packing the first leaf's sample saves at least a tenth. Random floats don't shrink.
bool packing_helps(std::span<const std::byte> sample);

// Appends one leaf of the stream to `stream`.
void append_leaf(std::vector<uint8_t>& stream, std::span<const std::byte> leaf, bool pack);

class LeafDecoder {
  public:
    // `take` gets each leaf's index and bytes, in order, and may throw.
    using Take = std::function<void(uint64_t index, std::span<const std::byte> leaf)>;
    LeafDecoder(uint64_t size_bytes, uint64_t first_leaf, Take take);
    ~LeafDecoder();
    LeafDecoder(LeafDecoder&&) noexcept;

    // Takes the next piece, of any length. Throws ErrorKind::input for what is not a leaf stream of that
    // blob.
    void add(std::span<const uint8_t> piece);
    bool complete() const { return next_leaf_ == leaf_count(size_bytes_); }
    uint64_t next_leaf() const { return next_leaf_; }

  private:
    void unpack();

    uint64_t size_bytes_;
    uint64_t next_leaf_;
    Take take_;
    std::vector<uint8_t> pending_;  // of the current leaf, head included
    struct Zstd;
    std::unique_ptr<Zstd> zstd_;
};

}  // namespace goblin
