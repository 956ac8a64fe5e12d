// Owns a tensor's memory.
#include "core/tensor/tensor.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"

namespace goblin {

namespace {
constexpr size_t alignment_bytes = 64;
}

std::string TensorSpec::text() const {
    return fmt::format("{}{}", name_of(dtype), shape.text());
}

void Tensor::Free::operator()(std::byte* memory) const {
    std::free(memory);
}

Tensor::Tensor(TensorSpec spec) : spec_(spec) {
    const uint64_t padded = (spec.size_bytes() + alignment_bytes) / alignment_bytes * alignment_bytes;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment_bytes, padded));
    if (memory == nullptr)
        throw Error(ErrorKind::memory,
                    "expected {} bytes of memory for a tensor {}, the system has none left", padded,
                    spec.text());
    memory_.reset(memory);
    std::memset(memory, 0, padded);
}

void Tensor::expect_element(DType dtype) const {
    const bool same = dtype == spec_.dtype || (dtype == DType::u8 && spec_.dtype == DType::boolean);
    assert(same && "a tensor is read as what it is");
    if (!same)
        throw Error(ErrorKind::numeric, "expected a tensor of {}, found {}", name_of(dtype), spec_.text());
}

Tensor Tensor::clone() const {
    Tensor copy(spec_);
    if (size_bytes() > 0) std::memcpy(copy.memory_.get(), memory_.get(), size_bytes());
    return copy;
}

bool Tensor::same_bits(const Tensor& other) const {
    return spec_ == other.spec_ &&
           (size_bytes() == 0 || std::memcmp(memory_.get(), other.memory_.get(), size_bytes()) == 0);
}

}  // namespace goblin
