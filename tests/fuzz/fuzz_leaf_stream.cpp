// Any bytes as a leaf stream, arriving in any pieces: the first five say the blob's size and the pieces'
// length.
#include <cstdint>

#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 5) return 0;
    const uint64_t blob_bytes =
        (uint64_t{data[0]} | uint64_t{data[1]} << 8 | uint64_t{data[2]} << 16) % (4 * leaf_size_bytes);
    const uint64_t first_leaf = data[3] % leaf_count(blob_bytes);
    const size_t piece_bytes = size_t{data[4]} + 1;
    std::span<const uint8_t> stream(data + 5, size - 5);
    uint64_t next_leaf = first_leaf;
    try {
        LeafDecoder decoder(blob_bytes, first_leaf, [&](uint64_t index, std::span<const std::byte> leaf) {
            REQUIRE(index == next_leaf++);
            REQUIRE(leaf.size() == leaf_length(blob_bytes, index));
        });
        while (!stream.empty()) {
            const auto piece = stream.first(std::min(piece_bytes, stream.size()));
            decoder.add(piece);
            stream = stream.subspan(piece.size());
        }
        REQUIRE(decoder.next_leaf() == next_leaf);
        REQUIRE(decoder.complete() == (next_leaf == leaf_count(blob_bytes)));
    } catch (const Error&) {
    }
    return 0;
}
