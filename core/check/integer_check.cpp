// Three passes over B, A and C; two more over A and B where their largest elements decide which ring is used.
#include "core/check/integer_check.hpp"

#include <atomic>

#include "core/check/integer_projection.hpp"
#include "core/check/recompute.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

constexpr double primes_drawn_from = 50'697'537;

template <typename T>
uint64_t largest_magnitude(const Tile& tile, const MatrixSource& matrix) {
    if constexpr (sizeof(T) == 1) {
        return std::is_signed_v<T> ? 128 : 255;
    } else {
        std::atomic<uint64_t> largest{0};
        for_each_row_band<T>(tile, matrix, [&](const TypedBlock<T>& block, unsigned) {
            uint64_t here = 0;
            for (int64_t i = 0; i < block.place.rows; ++i)
                here = std::max(here, row_magnitude(block.elements + i * block.stride, block.place.cols));
            uint64_t before = largest;
            while (before < here && !largest.compare_exchange_weak(before, here)) {
            }
        });
        return largest;
    }
}

// Whether no sum of K products can leave the result's type, so that C is A · B among the integers.
template <typename T>
bool cannot_wrap(const Tile& tile) {
    constexpr uint64_t limit = uint64_t{1} << (sizeof(ProductOf<T>) * 8 - 1);
    const uint64_t a = largest_magnitude<T>(tile, tile.a);
    const uint64_t b = largest_magnitude<T>(tile, tile.b);
    return saturating_product({static_cast<uint64_t>(tile.k()), a, b}) < limit;
}

// The rows of a matrix projected on the ring's vectors, [vectors, rows].
template <typename T, typename Ring, typename Visit>
std::vector<typename Ring::Word> project_rows(const Tile& tile, const MatrixSource& matrix, const Ring& ring,
                                              std::vector<typename Ring::Word> vectors, Visit visit) {
    const typename Ring::Operand operand = ring.operand(std::move(vectors));
    std::vector<typename Ring::Word> sums(static_cast<size_t>(matrix.rows() * Ring::vectors));
    for_each_row_band<T>(tile, matrix, [&](const TypedBlock<T>& block, unsigned) {
        for (int64_t i = 0; i < block.place.rows; ++i)
            ring.add_row(block.elements + i * block.stride, block.place.cols, operand, block.place.col,
                         sums.data() + block.place.row + i, matrix.rows());
        visit(block);  // now that the block is in the cache
    });
    return sums;
}

// Rows of C in which C·x isn't A·(B·x).
template <typename T, typename Ring>
std::vector<int64_t> differing_rows(const Tile& tile, const Ring& ring,
                                    const std::vector<typename Ring::Word>& x, DrawnElements<T>& drawn) {
    const auto no_visit = [](const auto&) {};
    auto y = project_rows<T>(tile, tile.b, ring, x, [&](const TypedBlock<T>& b) { drawn.collect(b); });
    const auto z = project_rows<T>(tile, tile.a, ring, std::move(y), no_visit);
    const auto w = project_rows<ProductOf<T>>(tile, tile.c, ring, x, no_visit);
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < tile.m(); ++row)
        for (auto at = static_cast<size_t>(row); at < w.size(); at += static_cast<size_t>(tile.m()))
            if (w[at] != z[at]) {
                rows.push_back(row);
                break;
            }
    return rows;
}

}  // namespace

template <typename T>
ProductVerdict check_integers(const Tile& tile, SecretDraws& draws) {
    using Word = std::make_unsigned_t<ProductOf<T>>;
    const auto n = static_cast<size_t>(tile.n());
    ProductVerdict verdict;
    DrawnElements<T> drawn(tile, draws);
    std::vector<int64_t> rows;
    if (cannot_wrap<T>(tile)) {
        const PrimeField field{draws.prime()};
        rows = differing_rows<T>(tile, field, draws.all_below(field.prime, n), drawn);
        // An error is below 2^w, so at most w ÷ 30 of the primes divide it; else one factor in p hides it.
        verdict.escape_probability = static_cast<double>(sizeof(Word) * 8 / 30) / primes_drawn_from + 0x1p-30;
    } else {
        const WrappingRing<Word> ring;
        rows = differing_rows<T>(tile, ring, draws.words<Word>(n * ring.vectors), drawn);
        verdict.escape_probability = 1.0 / (1 << ring.vectors);
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
