// Shape: the lengths of a tensor's axes, bounded in rank and in number of elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace goblin {

inline constexpr size_t max_rank = 8;
inline constexpr int64_t max_elements = int64_t{1} << 40;

// Every Shape that exists is valid: rank ≤ 8, no negative length, at most 2^40 elements.
class Shape {
  public:
    Shape() = default;  // rank 0: one element
    Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
    // Throws ErrorKind::input when a bound is exceeded.
    explicit Shape(std::span<const int64_t> dims);

    size_t rank() const { return rank_; }
    int64_t operator[](size_t axis) const;
    std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }
    int64_t elements() const { return elements_; }
    std::string text() const;  // "[1797, 64]"

    friend bool operator==(const Shape& a, const Shape& b) {
        return a.rank_ == b.rank_ && a.dims_ == b.dims_;
    }

  private:
    std::array<int64_t, max_rank> dims_{};
    size_t rank_ = 0;
    int64_t elements_ = 1;
};

}  // namespace goblin
