// Element types: one table row each, from which names, sizes, wire codes and .npy descriptors come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace goblin {

// name, wire code, bytes per element, .npy descriptor without byte order, is a float
#define GOBLIN_DTYPES(X)      \
    X(f32, 1, 4, "f4", true)  \
    X(f64, 2, 8, "f8", true)  \
    X(i32, 3, 4, "i4", false) \
    X(i64, 4, 8, "i8", false) \
    X(i8, 5, 1, "i1", false)  \
    X(u8, 6, 1, "u1", false)  \
    X(boolean, 7, 1, "b1", false)

// The values are the wire codes; they are part of digests and never change.
enum class DType : uint8_t {
#define GOBLIN_DTYPE_ENUM(name, code, size, npy, is_float) name = code,
    GOBLIN_DTYPES(GOBLIN_DTYPE_ENUM)
#undef GOBLIN_DTYPE_ENUM
};

struct DTypeInfo {
    DType dtype;
    std::string_view name;  // "f32"; bool is "bool"
    size_t size_bytes;
    std::string_view npy_descriptor;  // "f4"
    bool is_float;
};

std::span<const DTypeInfo> all_dtypes();
const DTypeInfo& dtype_info(DType dtype);
inline size_t size_of(DType dtype) {
    return dtype_info(dtype).size_bytes;
}
inline std::string_view name_of(DType dtype) {
    return dtype_info(dtype).name;
}
std::optional<DType> dtype_from_code(uint64_t code);
std::optional<DType> dtype_from_name(std::string_view name);

// By the C++ type that holds one element in memory.
template <typename T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, float>)
        return DType::f32;
    else if constexpr (std::is_same_v<T, double>)
        return DType::f64;
    else if constexpr (std::is_same_v<T, int32_t>)
        return DType::i32;
    else if constexpr (std::is_same_v<T, int64_t>)
        return DType::i64;
    else if constexpr (std::is_same_v<T, int8_t>)
        return DType::i8;
    else {
        static_assert(std::is_same_v<T, uint8_t>, "no element type of that kind");
        return DType::u8;
    }
}

}  // namespace goblin
