// Projections of integer rows on secret vectors over two rings: a prime field, and the integers modulo 2^32
// or 2^64.
//
// A ring says what its numbers are (Word), how many vectors it takes (vectors), how vectors are held to be
// multiplied with (Operand, made from [vectors, length] words), and how a row is projected:
//   add_row(row, cols, operand, first, sum, sum_stride):  sum[v · sum_stride] += Σ_j row_j · operand_(v,
//   first + j)
#pragma once

#include <cstdint>
#include <vector>

namespace goblin {

// Integers modulo a prime p between 2^30 and 2^31.
struct PrimeField {
    using Word = uint32_t;  // below p
    static constexpr int vectors = 1;
    uint32_t prime = 0;

    // Representatives between −p/2 and p/2, split for 16-bit multiplications: low + 2^15 · high, 0 ≤ low <
    // 2^15.
    struct Operand {
        std::vector<int16_t> low;
        std::vector<int16_t> high;
    };
    Operand operand(const std::vector<Word>& words) const;

    void add_row(const int8_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                 int64_t) const;
    void add_row(const uint8_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                 int64_t) const;
    void add_row(const int32_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                 int64_t) const;
    void add_row(const int64_t* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                 int64_t) const;
};

// Integers modulo 2^32 (uint32_t) or 2^64 (uint64_t).
template <typename UnsignedWord>
struct WrappingRing {
    using Word = UnsignedWord;
    // An error e escapes one uniform vector with a probability of at most ½: where e is 2^(w−1), only the
    // lowest bit of its factor shows.
    static constexpr int vectors = 20;

    struct Operand {
        std::vector<Word> words;
        int64_t length = 0;
    };
    Operand operand(std::vector<Word> words) const {
        const auto length = static_cast<int64_t>(words.size()) / vectors;
        return {std::move(words), length};
    }

    template <typename T>
    void add_row(const T* row, int64_t cols, const Operand& operand, int64_t first, Word* sum,
                 int64_t sum_stride) const {
        for (int v = 0; v < vectors; ++v) {
            const Word* vector = operand.words.data() + v * operand.length + first;
            Word total = 0;
            for (int64_t j = 0; j < cols; ++j)
                total += static_cast<Word>(static_cast<int64_t>(row[j])) * vector[j];
            sum[v * sum_stride] += total;
        }
    }
};

// The case that has a vectorised form.
template <>
template <>
void WrappingRing<uint32_t>::add_row(const int32_t* row, int64_t cols, const Operand& operand, int64_t first,
                                     uint32_t* sum, int64_t sum_stride) const;

// The largest |element|.
uint64_t row_magnitude(const int32_t* row, int64_t cols);
uint64_t row_magnitude(const int64_t* row, int64_t cols);

}  // namespace goblin
