// Exact recomputation of chosen elements of a tile, bit for bit by the contract: the only thing that
// convicts.
#pragma once

#include <optional>
#include <span>

#include "core/check/product_check.hpp"
#include "core/check/tile.hpp"

namespace goblin {

// An element as a number of its size.
template <typename T>
uint64_t bits_of(T value) {
    if constexpr (sizeof(T) == 4)
        return std::bit_cast<uint32_t>(value);
    else
        return std::bit_cast<uint64_t>(value);
}

// The first differing element in the rows (columns) given, which are computed again in that order, a few at a
// time.
template <typename T>
std::optional<ProductConviction> recompute_rows(const Tile& tile, std::span<const int64_t> rows);
template <typename T>
std::optional<ProductConviction> recompute_columns(const Tile& tile, std::span<const int64_t> cols);

// Where the contract leaves no arithmetic: an element without these bits in the rows (columns) given.
template <typename T>
std::optional<ProductConviction> expect_rows(const Tile& tile, std::span<const int64_t> rows, uint64_t bits);
template <typename T>
std::optional<ProductConviction> expect_columns(const Tile& tile, std::span<const int64_t> cols,
                                                uint64_t bits);

// Some elements, drawn in secret before B is read: their columns of B are collected as its blocks pass by.
template <typename T>
class DrawnElements {
  public:
    DrawnElements(const Tile& tile, SecretDraws& draws);
    // For every block of B, on any thread.
    void collect(const TypedBlock<T>& b);
    std::optional<ProductConviction> recompute() const;
    int64_t count() const { return static_cast<int64_t>(places_.size()); }

  private:
    struct Place {
        int64_t row = 0;
        int64_t col = 0;
    };
    const Tile& tile_;
    std::vector<Place> places_;
    std::vector<T> columns_;  // [count, K]
};

}  // namespace goblin
