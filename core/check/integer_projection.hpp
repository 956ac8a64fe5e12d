// Projections of integer rows on secret vectors, over two rings.
#pragma once

#include <cstdint>

namespace goblin {

__extension__ typedef __int128 Int128;

// Integers modulo a prime between 2^30 and 2^31; words are below it.
struct PrimeField {
    using Word = uint32_t;
    static constexpr int vectors = 1;
    uint32_t prime = 0;

    // sum[0] += Σ_j row_j · vector_j
    template <typename T>
    void add_row(const T* row, int64_t cols, const Word* vector, int64_t, Word* sum, int64_t) const {
        Int128 total = *sum;
        if constexpr (sizeof(T) == 1) {
            // 2^8 · 2^31 · 2^20 stay within 63 bits.
            constexpr int64_t run = int64_t{1} << 20;
            for (int64_t first = 0; first < cols; first += run) {
                int64_t part = 0;
                for (int64_t j = first; j < cols && j < first + run; ++j)
                    part += static_cast<int64_t>(row[j]) * static_cast<int64_t>(vector[j]);
                total += part;
            }
        } else {
            for (int64_t j = 0; j < cols; ++j) total += static_cast<Int128>(row[j]) * vector[j];
        }
        const auto remainder = static_cast<int64_t>(total % prime);
        *sum = static_cast<Word>(remainder < 0 ? remainder + prime : remainder);
    }
};

// Integers modulo 2^32 or 2^64.
template <typename UnsignedWord>
struct WrappingRing {
    using Word = UnsignedWord;
    int vectors = 0;

    // sum[v · sum_stride] += Σ_j row_j · vector[v · vector_stride + j]
    template <typename T>
    void add_row(const T* row, int64_t cols, const Word* vector, int64_t vector_stride, Word* sum,
                 int64_t sum_stride) const {
        for (int v = 0; v < vectors; ++v) {
            Word total = 0;
            for (int64_t j = 0; j < cols; ++j)
                total += static_cast<Word>(static_cast<int64_t>(row[j])) * vector[v * vector_stride + j];
            sum[v * sum_stride] += total;
        }
    }
};

}  // namespace goblin
