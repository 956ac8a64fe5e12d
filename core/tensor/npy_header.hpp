// The header of a .npy file (NumPy's NEP 1, versions 1.0 to 3.0): a strict, bounded parser, and a writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/tensor/tensor.hpp"

namespace goblin {

// The longest header that is read: magic, version, length and a dictionary of at most 64 KiB.
inline constexpr size_t npy_max_dictionary_bytes = 65'536;
inline constexpr size_t npy_max_header_bytes = 12 + npy_max_dictionary_bytes;
// Where NumPy lets the elements start, and we do.
inline constexpr size_t npy_alignment_bytes = 64;

// How elements follow one another in the file: the last axis fastest (C), or the first (Fortran).
enum class NpyOrder : uint8_t { c, fortran };

struct NpyHeader {
    TensorSpec spec;
    NpyOrder order = NpyOrder::c;
    bool big_endian = false;  // never for one-byte elements
    uint64_t data_offset_bytes = 0;

    uint64_t file_size_bytes() const { return data_offset_bytes + spec.size_bytes(); }
    friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

// `start` is the beginning of the file: all of it, or its first npy_max_header_bytes. Throws ErrorKind::input
// for anything that isn't a plain array of an element type of ours; the message says what was found and what
// to do.
NpyHeader parse_npy_header(std::span<const std::byte> start);

// A version 1.0 header for little-endian elements in C order, its length a multiple of 64 bytes.
std::string make_npy_header(const TensorSpec& spec);

}  // namespace goblin
