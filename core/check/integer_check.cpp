// Three passes over B, A and C (two more over A and B where their largest elements decide which ring is
// used).
#include "core/check/integer_check.hpp"

#include <atomic>

#include "core/check/integer_projection.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

// With 20 vectors modulo 2^w an error escapes with 2^-20 at most: a multiple of 2^(w−1) shows only where its
// factor is odd.
constexpr int wrapping_vectors = 20;
// A non-zero error below 2^64 has at most two prime factors above 2^30; one below 2^32 has at most one.
constexpr double primes_drawn_from = 50'697'537;

template <typename T>
uint64_t largest_magnitude(const Tile& tile, const MatrixSource& matrix) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? 128 : 255;
    std::atomic<uint64_t> largest{0};
    for_each_row_band<T>(tile, matrix, [&](const TypedBlock<T>& block, unsigned) {
        uint64_t here = 0;
        for (int64_t i = 0; i < block.place.rows; ++i)
            for (int64_t j = 0; j < block.place.cols; ++j) {
                const auto value = static_cast<int64_t>(block.at(i, j));
                here =
                    std::max(here, value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
            }
        uint64_t before = largest;
        while (before < here && !largest.compare_exchange_weak(before, here)) {
        }
    });
    return largest;
}

// Whether no sum of K products can leave the result's type, so that C is A · B among the integers.
template <typename T>
bool cannot_wrap(const Tile& tile) {
    constexpr uint64_t limit = uint64_t{1} << (sizeof(ProductOf<T>) * 8 - 1);
    const uint64_t a = largest_magnitude<T>(tile, tile.a);
    const uint64_t b = largest_magnitude<T>(tile, tile.b);
    return saturating_product({static_cast<uint64_t>(tile.k()), a, b}) < limit;
}

// Rows of C in which C·x isn't A·(B·x), over a ring.
template <typename Ring, typename T>
std::vector<int64_t> differing_rows(const Tile& tile, const Ring& ring,
                                    const std::vector<typename Ring::Word>& x, DrawnElements<T>& drawn) {
    using Words = std::vector<typename Ring::Word>;
    const auto project = [&](const auto& block, const Words& vectors, int64_t length, Words& result) {
        for (int64_t i = 0; i < block.place.rows; ++i)
            ring.add_row(block.elements + i * block.stride, block.place.cols,
                         vectors.data() + block.place.col, length, result.data() + block.place.row + i,
                         static_cast<int64_t>(result.size()) / ring.vectors);
    };
    const auto words = [&](int64_t length) { return Words(static_cast<size_t>(length * ring.vectors)); };
    Words y = words(tile.k());
    for_each_row_band<T>(tile, tile.b, [&](const TypedBlock<T>& b, unsigned) {
        project(b, x, tile.n(), y);
        drawn.collect(b);  // now that the block is in the cache
    });
    Words z = words(tile.m());
    for_each_row_band<T>(tile, tile.a, [&](const TypedBlock<T>& a, unsigned) { project(a, y, tile.k(), z); });
    Words w = words(tile.m());
    for_each_row_band<ProductOf<T>>(
        tile, tile.c, [&](const TypedBlock<ProductOf<T>>& c, unsigned) { project(c, x, tile.n(), w); });
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < tile.m(); ++i)
        for (auto at = static_cast<size_t>(i); at < w.size(); at += static_cast<size_t>(tile.m()))
            if (w[at] != z[at]) {
                rows.push_back(i);
                break;
            }
    return rows;
}

}  // namespace

template <typename T>
ProductVerdict check_integers(const Tile& tile, SecretDraws& draws) {
    using Word = std::make_unsigned_t<ProductOf<T>>;
    ProductVerdict verdict;
    DrawnElements<T> drawn(tile, draws);
    std::vector<int64_t> rows;
    if (cannot_wrap<T>(tile)) {
        const PrimeField field{draws.prime()};
        rows = differing_rows<PrimeField, T>(
            tile, field, draws.all_below(field.prime, static_cast<size_t>(tile.n())), drawn);
        verdict.escape_probability = (sizeof(Word) == 8 ? 2 : 1) / primes_drawn_from + 0x1p-30;
    } else {
        const WrappingRing<Word> ring{wrapping_vectors};
        rows = differing_rows<WrappingRing<Word>, T>(
            tile, ring, draws.words<Word>(static_cast<size_t>(tile.n() * wrapping_vectors)), drawn);
        verdict.escape_probability = 0x1p-20;
    }
    verdict.conviction = drawn.recompute();
    verdict.elements_recomputed = drawn.count();
    if (!verdict.conviction) {
        verdict.conviction = recompute_rows<T>(tile, rows);
        verdict.rows_recomputed = static_cast<int64_t>(rows.size());
        assert((rows.empty() || verdict.conviction) && "over a ring, a difference is one");
    }
    return verdict;
}

template ProductVerdict check_integers<int8_t>(const Tile&, SecretDraws&);
template ProductVerdict check_integers<uint8_t>(const Tile&, SecretDraws&);
template ProductVerdict check_integers<int32_t>(const Tile&, SecretDraws&);
template ProductVerdict check_integers<int64_t>(const Tile&, SecretDraws&);

}  // namespace goblin
