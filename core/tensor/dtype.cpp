// The table of element types and look-ups in it.
#include "core/tensor/dtype.hpp"

#include <array>
#include <cassert>

namespace goblin {

namespace {

constexpr std::string_view display_name(std::string_view identifier) {
    return identifier == "boolean" ? std::string_view("bool") : identifier;  // `bool` is a keyword
}

constexpr std::array table = {
#define GOBLIN_DTYPE_ROW(name, code, size, npy, is_float) \
    DTypeInfo{DType::name, display_name(#name), size, npy, is_float},
    GOBLIN_DTYPES(GOBLIN_DTYPE_ROW)
#undef GOBLIN_DTYPE_ROW
};

}  // namespace

std::span<const DTypeInfo> all_dtypes() {
    return table;
}

const DTypeInfo& dtype_info(DType dtype) {
    const auto index = static_cast<size_t>(dtype) - 1;
    assert(index < table.size() && table[index].dtype == dtype);
    return table[index];
}

std::optional<DType> dtype_from_code(uint64_t code) {
    if (code < 1 || code > table.size()) return std::nullopt;
    return table[code - 1].dtype;
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const DTypeInfo& info : table)
        if (info.name == name) return info.dtype;
    return std::nullopt;
}

}  // namespace goblin
