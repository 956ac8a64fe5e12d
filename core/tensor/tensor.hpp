// Tensor: an element type, a shape and its own 64-byte-aligned, row-major memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "core/tensor/dtype.hpp"
#include "core/tensor/shape.hpp"

namespace goblin {

struct TensorSpec {
    DType dtype = DType::f32;
    Shape shape;

    uint64_t size_bytes() const { return static_cast<uint64_t>(shape.elements()) * size_of(dtype); }
    std::string text() const;  // "f32[1797, 64]"
    friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Movable, not copyable: copies of large memory are written out where they happen.
class Tensor {
  public:
    Tensor() : Tensor(TensorSpec{DType::f32, Shape{0}}) {}
    // Memory is zeroed, so that no other program's data can leak out. Throws ErrorKind::memory when there is
    // none.
    explicit Tensor(TensorSpec spec);
    Tensor(DType dtype, Shape shape) : Tensor(TensorSpec{dtype, shape}) {}

    template <typename T>
    static Tensor of(Shape shape, std::span<const T> values);

    const TensorSpec& spec() const { return spec_; }
    DType dtype() const { return spec_.dtype; }
    const Shape& shape() const { return spec_.shape; }
    size_t size_bytes() const { return static_cast<size_t>(spec_.size_bytes()); }

    std::span<std::byte> bytes() { return {memory_.get(), size_bytes()}; }
    std::span<const std::byte> bytes() const { return {memory_.get(), size_bytes()}; }

    // T must be the element's C++ type (bool is read as uint8_t).
    template <typename T>
    std::span<T> as();
    template <typename T>
    std::span<const T> as() const;

    Tensor clone() const;
    // Equal type, shape and bytes. Two NaNs of equal bits are equal, +0 and -0 are not.
    bool same_bits(const Tensor& other) const;

  private:
    struct Free {
        void operator()(std::byte* memory) const;
    };
    void expect_element(DType dtype) const;

    TensorSpec spec_;
    std::unique_ptr<std::byte[], Free> memory_;
};

template <typename T>
std::span<T> Tensor::as() {
    expect_element(dtype_of<T>());
    return {reinterpret_cast<T*>(memory_.get()), static_cast<size_t>(spec_.shape.elements())};
}

template <typename T>
std::span<const T> Tensor::as() const {
    expect_element(dtype_of<T>());
    return {reinterpret_cast<const T*>(memory_.get()), static_cast<size_t>(spec_.shape.elements())};
}

template <typename T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
    Tensor tensor(dtype_of<T>(), shape);
    std::span<T> target = tensor.as<T>();
    if (target.size() != values.size()) throw std::invalid_argument("as many values as elements");
    std::copy(values.begin(), values.end(), target.begin());
    return tensor;
}

}  // namespace goblin
