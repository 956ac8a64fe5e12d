// Any bytes as the start of a .npy file: refused by an Error, or a header that we write and read the same.
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/tensor/npy_header.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    NpyHeader header;
    try {
        header = parse_npy_header(std::as_bytes(std::span(data, size)));
    } catch (const Error&) {
        return 0;
    }
    REQUIRE(header.data_offset_bytes <= size && header.data_offset_bytes <= npy_max_header_bytes);
    REQUIRE(header.spec.size_bytes() <= uint64_t{8} * max_elements);
    REQUIRE(!header.big_endian || size_of(header.spec.dtype) > 1);
    const std::string text = make_npy_header(header.spec);
    const NpyHeader again = parse_npy_header(std::as_bytes(std::span(text)));
    REQUIRE(again == (NpyHeader{header.spec, NpyOrder::c, false, text.size()}));
    return 0;
}
