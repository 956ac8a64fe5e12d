// SHA-256 as FIPS 180-4 section 6.2.2 has it, on vectors; written once, compiled for each vector width.
#include "core/work/sha256_lanes.hpp"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/work/sha256_lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace goblin {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<uint32_t, sha256_most_lanes>;
using V = hn::Vec<D>;

constexpr size_t block_words = sha256_block_bytes / 4;
constexpr size_t rounds = 64;

alignas(64) constexpr uint32_t round_constants[rounds] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

HWY_INLINE V choose(V e, V f, V g) {
    return hn::Xor(g, hn::And(e, hn::Xor(f, g)));
}
HWY_INLINE V majority(V a, V b, V c) {
    return hn::Or(hn::And(a, b), hn::And(c, hn::Or(a, b)));
}
template <int i, int j, int k>
HWY_INLINE V rotations(V x) {
    return hn::Xor3(hn::RotateRight<i>(x), hn::RotateRight<j>(x), hn::RotateRight<k>(x));
}
template <int i, int j, int shift>
HWY_INLINE V schedule_term(V x) {
    return hn::Xor3(hn::RotateRight<i>(x), hn::RotateRight<j>(x), hn::ShiftRight<shift>(x));
}

// words[word · 16 + lane] = the big-endian words of each message's next block.
HWY_INLINE void gather_words(const std::byte* const* messages, size_t offset_bytes, uint32_t* words) {
    for (size_t lane = 0; lane < sha256_most_lanes; ++lane) {
        const std::byte* const from = messages[lane] + offset_bytes;
#pragma GCC unroll 8
        for (size_t pair = 0; pair < block_words / 2; ++pair) {
            uint64_t bytes = 0;
            std::memcpy(&bytes, from + 8 * pair, 8);
            if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
            words[2 * pair * sha256_most_lanes + lane] = static_cast<uint32_t>(bytes >> 32);
            words[(2 * pair + 1) * sha256_most_lanes + lane] = static_cast<uint32_t>(bytes);
        }
    }
}

// One block of as many messages as a vector has lanes, from lane `first` on.
HWY_INLINE void add_block(Sha256Lanes& state, size_t first, const uint32_t* words) {
    const D d;
    V w[block_words];
#pragma GCC unroll 16
    for (size_t t = 0; t < block_words; ++t) w[t] = hn::LoadU(d, words + t * sha256_most_lanes + first);
    V s[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) s[i] = hn::LoadU(d, state[i].data() + first);
    V a = s[0], b = s[1], c = s[2], e = s[4], f = s[5], g = s[6], h = s[7], dd = s[3];
    for (size_t block = 0; block < rounds; block += block_words) {
#pragma GCC unroll 16
        for (size_t t = 0; t < block_words; ++t) {
            if (block != 0)
                w[t] = hn::Add(
                    hn::Add(w[t], schedule_term<7, 18, 3>(w[(t + 1) % block_words])),
                    hn::Add(w[(t + 9) % block_words], schedule_term<17, 19, 10>(w[(t + 14) % block_words])));
            const V constant = hn::Set(d, round_constants[block + t]);
            const V t1 = hn::Add(hn::Add(h, rotations<6, 11, 25>(e)),
                                 hn::Add(choose(e, f, g), hn::Add(constant, w[t])));
            const V t2 = hn::Add(rotations<2, 13, 22>(a), majority(a, b, c));
            h = g;
            g = f;
            f = e;
            e = hn::Add(dd, t1);
            dd = c;
            c = b;
            b = a;
            a = hn::Add(t1, t2);
        }
    }
    const V sum[8] = {a, b, c, dd, e, f, g, h};
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) hn::StoreU(hn::Add(s[i], sum[i]), d, state[i].data() + first);
}

void add_blocks(Sha256Lanes& state, const std::byte* const* messages, size_t count) {
    alignas(64) uint32_t words[block_words * sha256_most_lanes];
    for (size_t block = 0; block < count; ++block) {
        gather_words(messages, block * sha256_block_bytes, words);
        for (size_t first = 0; first < sha256_most_lanes; first += hn::Lanes(D()))
            add_block(state, first, words);
    }
}

size_t lanes() {
    return hn::Lanes(D());
}

}  // namespace HWY_NAMESPACE
}  // namespace goblin
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace goblin {

HWY_EXPORT(add_blocks);
HWY_EXPORT(lanes);

Sha256Lanes sha256_lanes_start() {
    constexpr uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    Sha256Lanes state;
    for (size_t i = 0; i < state.size(); ++i) state[i].fill(start[i]);
    return state;
}

void sha256_lanes_add(Sha256Lanes& state, std::span<const std::byte* const, sha256_most_lanes> messages,
                      size_t count) {
    HWY_DYNAMIC_DISPATCH(add_blocks)(state, messages.data(), count);
}

bool sha256_lanes_pay() {
    static const bool pay = HWY_DYNAMIC_DISPATCH(lanes)() == sha256_most_lanes;
    return pay;
}

}  // namespace goblin
#endif
