// Packs and unpacks the leaves of a blob in transit.
#include "core/work/leaf_stream.hpp"

#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "core/work/limits.hpp"

namespace goblin {

namespace {

constexpr size_t head_bytes = 5;
constexpr uint8_t codec_raw = 0;
constexpr uint8_t codec_zstd = 1;
constexpr int packing_level = 1;
constexpr size_t sample_bytes = size_t{64} << 10;

// log2 of limits::zstd_window_bytes
constexpr int window_log = 23;
static_assert((uint64_t{1} << window_log) == limits::zstd_window_bytes);

std::vector<uint8_t> pack(std::span<const std::byte> bytes) {
    std::vector<uint8_t> packed(ZSTD_compressBound(bytes.size()));
    const size_t size =
        ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), packing_level);
    if (ZSTD_isError(size))
        throw Error(ErrorKind::failed, "expected zstd to pack a leaf, found: {}", ZSTD_getErrorName(size));
    packed.resize(size);
    return packed;
}

}  // namespace

uint64_t leaf_length(uint64_t size_bytes, uint64_t index) {
    assert(index < leaf_count(size_bytes));
    return std::min(leaf_size_bytes, size_bytes - index * leaf_size_bytes);
}

uint64_t raw_stream_bytes(uint64_t size_bytes, uint64_t first_leaf) {
    const uint64_t leaves = leaf_count(size_bytes);
    assert(first_leaf <= leaves);
    if (first_leaf == leaves) return 0;
    return (leaves - first_leaf) * head_bytes + size_bytes - first_leaf * leaf_size_bytes;
}

bool packing_helps(std::span<const std::byte> sample) {
    const auto start = sample.first(std::min(sample.size(), sample_bytes));
    return start.size() >= 256 && pack(start).size() < start.size() / 10 * 9;
}

void append_leaf(std::vector<uint8_t>& stream, std::span<const std::byte> leaf, bool pack_it) {
    assert(leaf.size() <= leaf_size_bytes);
    std::vector<uint8_t> packed;
    if (pack_it) packed = pack(leaf);
    const bool packed_is_smaller = pack_it && packed.size() < leaf.size();
    const auto* raw = reinterpret_cast<const uint8_t*>(leaf.data());
    const std::span<const uint8_t> stored =
        packed_is_smaller ? std::span<const uint8_t>(packed) : std::span(raw, leaf.size());
    stream.push_back(packed_is_smaller ? codec_zstd : codec_raw);
    for (int shift = 0; shift < 32; shift += 8)
        stream.push_back(static_cast<uint8_t>(stored.size() >> shift));
    stream.insert(stream.end(), stored.begin(), stored.end());
}

struct LeafDecoder::Zstd {
    struct Free {
        void operator()(ZSTD_DCtx* made) const { ZSTD_freeDCtx(made); }
    };
    std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
    std::vector<std::byte> leaf;

    Zstd() {
        if (!context)
            throw Error(ErrorKind::memory, "expected memory for unpacking, the system has none left");
        ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, window_log);
    }
    std::span<const std::byte> unpack(std::span<const uint8_t> packed, size_t expected_bytes) {
        leaf.resize(expected_bytes);
        const size_t size =
            ZSTD_decompressDCtx(context.get(), leaf.data(), leaf.size(), packed.data(), packed.size());
        if (ZSTD_isError(size) || size != expected_bytes)
            throw Error(ErrorKind::input,
                        "blob: expected a leaf that unpacks to {} bytes, found one that doesn't",
                        expected_bytes);
        return leaf;
    }
};

LeafDecoder::LeafDecoder(uint64_t size_bytes, uint64_t first_leaf, Take take)
    : size_bytes_(size_bytes), next_leaf_(first_leaf), take_(std::move(take)) {
    assert(first_leaf <= leaf_count(size_bytes));
}
LeafDecoder::~LeafDecoder() = default;
LeafDecoder::LeafDecoder(LeafDecoder&&) noexcept = default;

void LeafDecoder::add(std::span<const uint8_t> piece) {
    while (!piece.empty()) {
        if (complete())
            throw Error(ErrorKind::input, "blob: expected the end after {} leaves, found more", next_leaf_);
        size_t wanted = head_bytes;
        if (pending_.size() >= head_bytes) {
            uint32_t stored = 0;
            std::memcpy(&stored, pending_.data() + 1, sizeof stored);
            wanted += stored;
        }
        const size_t taken = std::min(piece.size(), wanted - pending_.size());
        pending_.insert(pending_.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(taken));
        piece = piece.subspan(taken);
        if (pending_.size() >= head_bytes) unpack();
    }
}

void LeafDecoder::unpack() {
    uint32_t stored = 0;
    std::memcpy(&stored, pending_.data() + 1, sizeof stored);
    const uint64_t length = leaf_length(size_bytes_, next_leaf_);
    const uint8_t codec = pending_[0];
    const bool fits =
        codec == codec_raw ? stored == length : codec == codec_zstd && stored > 0 && stored < length;
    if (!fits)
        throw Error(ErrorKind::input,
                    "blob: expected leaf {} of {} bytes, raw or packed smaller, found codec {} with {} bytes",
                    next_leaf_, length, codec, stored);
    if (pending_.size() < head_bytes + stored) return;
    const std::span<const uint8_t> body(pending_.data() + head_bytes, stored);
    if (codec == codec_raw) {
        take_(next_leaf_, {reinterpret_cast<const std::byte*>(body.data()), body.size()});
    } else {
        if (!zstd_) zstd_ = std::make_unique<Zstd>();
        take_(next_leaf_, zstd_->unpack(body, length));
    }
    ++next_leaf_;
    pending_.clear();
}

}  // namespace goblin
