// SHA-256 trees, on OpenSSL's processor-specific SHA-256.
#include "core/work/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "core/work/hex.hpp"
#include "core/work/sha256_lanes.hpp"

namespace goblin {

namespace {

constexpr uint8_t leaf_tag = 0;
constexpr uint8_t node_tag = 1;
constexpr uint8_t root_tag = 2;

std::array<uint8_t, 8> little_endian(uint64_t value) {
    std::array<uint8_t, 8> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
    return bytes;
}

// One hashing context per thread: fetching the algorithm costs more than hashing a small tensor.
class Sha256 {
  public:
    Sha256() {
        if (EVP_DigestInit_ex2(context(), algorithm(), nullptr) != 1)
            throw Error(ErrorKind::failed, "expected SHA-256 from OpenSSL, found it unable to start");
    }
    Sha256& add(const void* data, size_t size) {
        if (EVP_DigestUpdate(context(), data, size) != 1)
            throw Error(ErrorKind::failed, "expected SHA-256 from OpenSSL, found it failing");
        return *this;
    }
    Sha256& add_byte(uint8_t value) { return add(&value, 1); }
    Sha256& add_u64(uint64_t value) { return add(little_endian(value).data(), sizeof value); }
    Digest finish() {
        Digest digest;
        if (EVP_DigestFinal_ex(context(), digest.bytes.data(), nullptr) != 1)
            throw Error(ErrorKind::failed, "expected SHA-256 from OpenSSL, found it failing");
        return digest;
    }

  private:
    static EVP_MD* algorithm() {
        static EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
        return fetched;
    }
    static EVP_MD_CTX* context() {
        struct Free {
            void operator()(EVP_MD_CTX* made) const { EVP_MD_CTX_free(made); }
        };
        static thread_local const std::unique_ptr<EVP_MD_CTX, Free> made(EVP_MD_CTX_new());
        return made.get();
    }
};

void expect_key(DigestKey key) {
    assert(key.empty() || key.size() == 32);
    (void)key;
}

// Up to 16 whole leaves at once. A leaf's message is its head, the 1 MiB, and FIPS 180-4's padding: the head
// and the leaf's beginning fill a first block, the leaf's end and the padding a last one.
class LeafLanes {
  public:
    // Below this, one leaf after the other is as fast.
    static constexpr uint64_t fewest_leaves = 7;

    LeafLanes(DigestKey key, uint64_t first_index, std::span<const std::byte> leaves)
        : leaves_(leaves), head_size_(leaf_head_size(key)) {
        expect_key(key);
        assert(leaves.size() % leaf_size_bytes == 0 && leaves.size() / leaf_size_bytes <= sha256_most_lanes);
        for (uint64_t lane = 0; lane < count(); ++lane) {
            std::byte* const first = ends_[lane].data();
            first[0] = std::byte{leaf_tag};
            if (!key.empty()) std::memcpy(first + 1, key.data(), key.size());
            put_u64(first + head_size_ - 16, first_index + lane);
            put_u64(first + head_size_ - 8, leaf_size_bytes);
            std::memcpy(first + head_size_, leaf(lane), sha256_block_bytes - head_size_);
            std::byte* const last = first + sha256_block_bytes;
            std::memcpy(last, leaf(lane) + leaf_size_bytes - head_size_, head_size_);
            last[head_size_] = std::byte{0x80};
            const uint64_t bits = 8 * (head_size_ + leaf_size_bytes);
            for (size_t i = 0; i < 8; ++i)
                last[sha256_block_bytes - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
        }
    }

    void append_to(std::vector<Digest>& digests) const {
        Sha256Lanes state = sha256_lanes_start();
        const auto add = [&](auto start_of, size_t blocks) {
            std::array<const std::byte*, sha256_most_lanes> messages{};
            for (uint64_t lane = 0; lane < sha256_most_lanes; ++lane)
                messages[lane] = start_of(std::min(lane, count() - 1));
            sha256_lanes_add(state, messages, blocks);
        };
        add([&](uint64_t lane) { return ends_[lane].data(); }, 1);
        add([&](uint64_t lane) { return leaf(lane) + sha256_block_bytes - head_size_; },
            leaf_size_bytes / sha256_block_bytes - 1);
        add([&](uint64_t lane) { return ends_[lane].data() + sha256_block_bytes; }, 1);
        for (uint64_t lane = 0; lane < count(); ++lane) {
            Digest& digest = digests.emplace_back();
            for (size_t i = 0; i < digest.bytes.size(); ++i)
                digest.bytes[i] = static_cast<uint8_t>(state[i / 4][lane] >> (24 - 8 * (i % 4)));
        }
    }

  private:
    static size_t leaf_head_size(DigestKey key) { return 1 + key.size() + 16; }
    static void put_u64(std::byte* to, uint64_t value) {
        std::memcpy(to, little_endian(value).data(), sizeof value);
    }
    uint64_t count() const { return leaves_.size() / leaf_size_bytes; }
    const std::byte* leaf(uint64_t lane) const { return leaves_.data() + lane * leaf_size_bytes; }

    std::span<const std::byte> leaves_;
    size_t head_size_;
    std::array<std::array<std::byte, 2 * sha256_block_bytes>, sha256_most_lanes> ends_{};
};

// Of whole leaves from `index` on, and a shorter last one.
void append_leaf_digests(DigestKey key, uint64_t index, std::span<const std::byte> bytes,
                         std::vector<Digest>& digests) {
    while (!bytes.empty()) {
        const uint64_t together = std::min<uint64_t>(bytes.size() / leaf_size_bytes, sha256_most_lanes);
        const bool in_lanes = together >= LeafLanes::fewest_leaves && sha256_lanes_pay();
        const uint64_t count = in_lanes ? together : 1;
        const auto taken = bytes.first(std::min<uint64_t>(bytes.size(), count * leaf_size_bytes));
        if (in_lanes)
            LeafLanes(key, index, taken).append_to(digests);
        else
            digests.push_back(leaf_digest(key, index, taken));
        bytes = bytes.subspan(taken.size());
        index += count;
    }
}

}  // namespace

std::string Digest::hex() const {
    return to_hex(bytes);
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
    Digest digest;
    if (!goblin::from_hex(text, digest.bytes)) return std::nullopt;
    return digest;
}

size_t DigestHash::operator()(const Digest& digest) const {
    size_t hash = 0;
    std::memcpy(&hash, digest.bytes.data(), sizeof hash);
    return hash;
}

Digest sha256(std::span<const uint8_t> bytes) {
    return Sha256().add(bytes.data(), bytes.size()).finish();
}

uint64_t leaf_count(uint64_t size_bytes) {
    return size_bytes == 0 ? 1 : (size_bytes - 1) / leaf_size_bytes + 1;
}

Digest leaf_digest(DigestKey key, uint64_t index, std::span<const std::byte> bytes) {
    expect_key(key);
    assert(bytes.size() <= leaf_size_bytes);
    Sha256 hash;
    hash.add_byte(leaf_tag).add(key.data(), key.size()).add_u64(index).add_u64(bytes.size());
    return hash.add(bytes.data(), bytes.size()).finish();
}

Digest root_digest(DigestKey key, const TensorSpec& spec, std::span<const Digest> leaves) {
    expect_key(key);
    assert(leaves.size() == leaf_count(spec.size_bytes()));
    std::vector<Digest> level(leaves.begin(), leaves.end());
    while (level.size() > 1) {
        size_t kept = 0;
        for (size_t i = 0; i + 1 < level.size(); i += 2) {
            Sha256 node;
            node.add_byte(node_tag).add(level[i].bytes.data(), 32).add(level[i + 1].bytes.data(), 32);
            level[kept++] = node.finish();
        }
        if (level.size() % 2 == 1) level[kept++] = level.back();
        level.resize(kept);
    }
    Sha256 root;
    root.add_byte(root_tag).add(key.data(), key.size());
    root.add_byte(static_cast<uint8_t>(spec.dtype)).add_byte(static_cast<uint8_t>(spec.shape.rank()));
    for (const int64_t length : spec.shape.dims()) root.add_u64(static_cast<uint64_t>(length));
    return root.add(level[0].bytes.data(), 32).finish();
}

Digest tensor_digest(DigestKey key, const TensorSpec& spec, std::span<const std::byte> bytes) {
    assert(bytes.size() == spec.size_bytes());
    std::vector<Digest> leaves;
    leaves.reserve(leaf_count(bytes.size()));
    append_leaf_digests(key, 0, bytes, leaves);
    if (leaves.empty()) leaves.push_back(leaf_digest(key, 0, bytes));
    return root_digest(key, spec, leaves);
}

DigestStream::DigestStream(DigestKey key, const TensorSpec& spec)
    : key_(key.begin(), key.end()), spec_(spec), remaining_bytes_(spec.size_bytes()) {
    expect_key(key);
}

void DigestStream::add(std::span<const std::byte> bytes) {
    if (bytes.size() > remaining_bytes_)
        throw Error(ErrorKind::input, "expected {} bytes for {}, found more", spec_.size_bytes(),
                    spec_.text());
    remaining_bytes_ -= bytes.size();
    while (!bytes.empty()) {
        if (pending_.empty() && bytes.size() >= leaf_size_bytes) {
            const size_t whole = bytes.size() / leaf_size_bytes * leaf_size_bytes;
            append_leaf_digests(key_, leaves_.size(), bytes.first(whole), leaves_);
            bytes = bytes.subspan(whole);
            continue;
        }
        const size_t taken = std::min<size_t>(bytes.size(), leaf_size_bytes - pending_.size());
        pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
        bytes = bytes.subspan(taken);
        if (pending_.size() == leaf_size_bytes) {
            close_leaf(pending_);
            pending_.clear();
        }
    }
}

Digest DigestStream::finish() {
    if (remaining_bytes_ != 0)
        throw Error(ErrorKind::input, "expected {} bytes for {}, found {} fewer", spec_.size_bytes(),
                    spec_.text(), remaining_bytes_);
    if (!pending_.empty() || leaves_.empty()) close_leaf(pending_);
    pending_.clear();
    return root_digest(key_, spec_, leaves_);
}

void DigestStream::close_leaf(std::span<const std::byte> bytes) {
    leaves_.push_back(leaf_digest(key_, leaves_.size(), bytes));
}

}  // namespace goblin
