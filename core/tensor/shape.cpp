// Checks a shape's bounds once, when it is made.
#include "core/tensor/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "core/error.hpp"

namespace goblin {

Shape::Shape(std::span<const int64_t> dims) : rank_(dims.size()) {
    if (dims.size() > max_rank)
        throw Error(ErrorKind::input, "expected at most {} axes, found {}", max_rank, dims.size());
    // Zeros first: [2^40, 2^40, 0] has no elements, but [2^40, 2^40] must be refused before the product
    // overflows.
    const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t length = dims[axis];
        if (length < 0 || length > max_elements)
            throw Error(ErrorKind::input, "expected axis lengths from 0 to 2^40, found {} on axis {}", length,
                        axis);
        if (!empty && elements_ > max_elements / length)
            throw Error(ErrorKind::input, "expected at most 2^40 elements, found shape [{}]",
                        fmt::join(dims, ", "));
        dims_[axis] = length;
        elements_ = empty ? 0 : elements_ * length;
    }
}

int64_t Shape::operator[](size_t axis) const {
    assert(axis < rank_);
    return dims_[axis];
}

std::string Shape::text() const {
    return fmt::format("[{}]", fmt::join(dims(), ", "));
}

}  // namespace goblin
