// Reads the subset of Python's literals that .npy headers are made of, without recursion and without a
// locale.
#include "core/tensor/npy_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace goblin {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::string_view save_again = "save the array again with numpy.save";

// What people mistake for .npy files, told by how it starts.
struct OtherFormat {
    std::string_view start;
    std::string_view name;
    std::string_view advice;
};
constexpr std::array other_formats = {
    OtherFormat{"PK\x03\x04", "a zip archive (perhaps .npz)",
                "save one array with numpy.save instead of numpy.savez"},
    OtherFormat{"\x80", "a Python pickle (perhaps a .pt or .pkl)",
                "load it in Python and save the array with numpy.save"},
    OtherFormat{"\x89HDF", "an HDF5 file", "load it in Python and save the array with numpy.save"},
    OtherFormat{"MATLAB", "a MATLAB file", "load it in Python and save the array with numpy.save"},
};

// Element types of NumPy that have no place here: the whole code, or its first letter when no code matches.
struct Unsupported {
    std::string_view code;
    std::string_view what;
    std::string_view advice;
};
constexpr std::array unsupported_types = {
    Unsupported{"f2", "16-bit floats", "save a.astype(numpy.float32)"},
    Unsupported{"f", "extended floats", "save a.astype(numpy.float64)"},
    Unsupported{"i2", "16-bit integers", "save a.astype(numpy.int32)"},
    Unsupported{"u2", "unsigned 16-bit integers", "save a.astype(numpy.int32)"},
    Unsupported{"u4", "unsigned 32-bit integers", "save a.astype(numpy.int64)"},
    Unsupported{"u8", "unsigned 64-bit integers", "save a.astype(numpy.int64) if every number is below 2^63"},
    Unsupported{"c", "complex numbers", "save a.real and a.imag as two arrays"},
    Unsupported{"O", "Python objects", "save a.astype(numpy.float32)"},
    Unsupported{"U", "text", "turn the text into numbers first"},
    Unsupported{"S", "text", "turn the text into numbers first"},
    Unsupported{"a", "text", "turn the text into numbers first"},
    Unsupported{"V", "raw bytes or a type from outside NumPy, such as bfloat16",
                "save a.astype(numpy.float32)"},
    Unsupported{"M", "dates", "save a.astype(numpy.int64)"},
    Unsupported{"m", "durations", "save a.astype(numpy.int64)"},
};
constexpr Unsupported structured{"", "a structured array",
                                 "save each field as an array of its own, a['name']"};
constexpr Unsupported unknown{"", "no type NumPy writes", save_again};

// Text of a file in a message: short, and without anything a terminal would obey.
std::string shown(std::string_view text) {
    constexpr size_t longest = 60;
    std::string safe(text.substr(0, longest));
    for (char& character : safe)
        if (character < ' ' || character > '~') character = '?';
    return text.size() > longest ? safe + "..." : safe;
}

std::string supported_names() {
    std::vector<std::string_view> names;
    for (const DTypeInfo& info : all_dtypes()) names.push_back(info.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void refuse_type(std::string_view descriptor, const Unsupported& reason) {
    throw Error(ErrorKind::input, "expected elements of one of the types {}, found {} ({}); {}",
                supported_names(), shown(descriptor), reason.what, reason.advice);
}

// A cursor over the dictionary.
class Literal {
  public:
    explicit Literal(std::string_view text) : text_(text) {}

    bool at_end() {
        skip_space();
        return position_ == text_.size();
    }
    bool take(std::string_view token) {
        skip_space();
        if (!text_.substr(position_).starts_with(token)) return false;
        position_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!take(token)) refuse(fmt::format("'{}'", token));
    }
    std::string_view quoted_string() {
        const bool is_double = take("\"");
        if (!is_double) expect("'");
        const size_t end = text_.find(is_double ? '"' : '\'', position_);
        const std::string_view value = text_.substr(position_, end - position_);
        if (end == std::string_view::npos || value.find('\\') != std::string_view::npos)
            refuse("a plain string");
        position_ = end + 1;
        return value;
    }
    bool boolean() {
        if (take("True")) return true;
        if (take("False")) return false;
        refuse("True or False");
    }
    // A decimal number, perhaps with the L that Python 2 wrote behind long ones.
    int64_t length() {
        skip_space();
        const size_t begin = position_;
        if (position_ < text_.size() && text_[position_] == '-') ++position_;
        const size_t first_digit = position_;
        int64_t value = 0;
        bool overflowed = false;
        for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
            overflowed |= __builtin_mul_overflow(value, 10, &value);
            overflowed |= __builtin_add_overflow(value, text_[position_] - '0', &value);
        }
        const std::string_view digits = text_.substr(first_digit, position_ - first_digit);
        if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) {
            position_ = begin;
            refuse("the length of an axis");
        }
        if (overflowed || first_digit != begin)
            throw Error(ErrorKind::input, "expected axis lengths from 0 to 2^40 in the header, found {}; {}",
                        shown(text_.substr(begin, position_ - begin)), save_again);
        take("L");
        return value;
    }
    std::string_view rest() {
        skip_space();
        return text_.substr(position_);
    }
    [[noreturn]] void refuse(std::string_view wanted) {
        throw Error(ErrorKind::input, "expected {} at byte {} of the header's dictionary, found {}; {}",
                    wanted, position_, at_end() ? "its end" : "'" + shown(rest().substr(0, 20)) + "'",
                    save_again);
    }

  private:
    void skip_space() {
        while (position_ < text_.size() &&
               std::string_view(" \t\r\n\f").find(text_[position_]) != std::string_view::npos)
            ++position_;
    }

    std::string_view text_;
    size_t position_ = 0;
};

struct Elements {
    DType dtype = DType::f32;
    bool big_endian = false;
};

// A descriptor is a byte order (absent, '=' and '|' mean the machine's own, which is little-endian wherever
// we run), a letter and a size.
Elements parse_descriptor(std::string_view descriptor) {
    std::string_view code = descriptor;
    const bool has_order = !code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos;
    const bool big_endian = has_order && code[0] == '>';
    if (has_order) code.remove_prefix(1);
    for (const DTypeInfo& info : all_dtypes())
        if (info.npy_descriptor == code) return {info.dtype, big_endian && info.size_bytes > 1};
    const std::string named = "'" + std::string(descriptor) + "'";
    for (const Unsupported& type : unsupported_types)
        if (type.code == code) refuse_type(named, type);
    for (const Unsupported& type : unsupported_types)
        if (type.code.size() == 1 && code.starts_with(type.code)) refuse_type(named, type);
    refuse_type(named, unknown);
}

Elements parse_descriptor(Literal& literal) {
    const std::string_view rest = literal.rest();
    if (rest.starts_with('[') || rest.starts_with('(')) refuse_type(rest, structured);
    return parse_descriptor(literal.quoted_string());
}

// A tuple of lengths. Like Python, "(3)" is no tuple.
Shape parse_shape(Literal& literal) {
    std::vector<int64_t> lengths;
    literal.expect("(");
    while (!literal.take(")")) {
        lengths.push_back(literal.length());
        if (literal.take(",")) continue;
        if (lengths.size() == 1) literal.refuse("','");
        literal.expect(")");
        break;
    }
    return Shape(std::span<const int64_t>(lengths));
}

NpyHeader parse_dictionary(std::string_view text) {
    Literal literal(text);
    std::optional<Elements> elements;
    std::optional<bool> is_fortran;
    std::optional<Shape> shape;
    literal.expect("{");
    while (!literal.take("}")) {
        const std::string_view key = literal.quoted_string();
        literal.expect(":");
        if (key == "descr" && !elements)
            elements = parse_descriptor(literal);
        else if (key == "fortran_order" && !is_fortran)
            is_fortran = literal.boolean();
        else if (key == "shape" && !shape)
            shape = parse_shape(literal);
        else
            throw Error(ErrorKind::input,
                        "expected the keys 'descr', 'fortran_order' and 'shape' once each in the header, "
                        "found '{}'; {}",
                        shown(key), save_again);
        if (literal.take(",")) continue;
        literal.expect("}");
        break;
    }
    if (!literal.at_end()) literal.refuse("nothing more");
    if (!elements || !is_fortran || !shape)
        throw Error(ErrorKind::input,
                    "expected the keys 'descr', 'fortran_order' and 'shape' in the header, found no '{}'; {}",
                    !elements ? "descr" : (!is_fortran ? "fortran_order" : "shape"), save_again);
    NpyHeader header;
    header.spec = {elements->dtype, *shape};
    header.order = *is_fortran ? NpyOrder::fortran : NpyOrder::c;
    header.big_endian = elements->big_endian;
    return header;
}

void require_magic(std::string_view text) {
    if (text.starts_with(magic)) return;
    if (text.empty())
        throw Error(ErrorKind::input, "expected a .npy file, found an empty one; {}", save_again);
    if (magic.starts_with(text))
        throw Error(ErrorKind::input, "expected a .npy file, found only its first {} bytes; copy it again",
                    text.size());
    for (const OtherFormat& format : other_formats)
        if (text.starts_with(format.start))
            throw Error(ErrorKind::input, "expected a .npy file, found {}; {}", format.name, format.advice);
    throw Error(ErrorKind::input, "expected a .npy file, which starts with \\x93NUMPY, found '{}'; {}",
                shown(text.substr(0, magic.size())), save_again);
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> start) {
    const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
    require_magic(text);
    const auto byte_at = [&](size_t index) { return static_cast<uint8_t>(text[index]); };
    const auto require_size = [&](uint64_t size_bytes) {
        if (text.size() < size_bytes)
            throw Error(ErrorKind::input,
                        "expected a .npy header of {} bytes, found a file of {}; copy it again", size_bytes,
                        text.size());
    };
    require_size(magic.size() + 2);
    const unsigned major = byte_at(magic.size());
    const unsigned minor = byte_at(magic.size() + 1);
    if (major < 1 || major > 3 || minor != 0)
        throw Error(ErrorKind::input, "expected a .npy file of version 1.0, 2.0 or 3.0, found {}.{}; {}",
                    major, minor, save_again);
    const size_t length_at = magic.size() + 2;
    const size_t dictionary_at = length_at + (major == 1 ? 2 : 4);
    require_size(dictionary_at);
    uint64_t dictionary_bytes = 0;
    for (size_t index = dictionary_at; index-- > length_at;)
        dictionary_bytes = dictionary_bytes << 8 | byte_at(index);
    if (dictionary_bytes > npy_max_dictionary_bytes)
        throw Error(ErrorKind::input, "expected a .npy header of at most {} bytes, found one of {}; {}",
                    npy_max_dictionary_bytes, dictionary_bytes, save_again);
    require_size(dictionary_at + dictionary_bytes);
    NpyHeader header = parse_dictionary(text.substr(dictionary_at, dictionary_bytes));
    header.data_offset_bytes = dictionary_at + dictionary_bytes;
    return header;
}

std::string make_npy_header(const TensorSpec& spec) {
    const DTypeInfo& info = dtype_info(spec.dtype);
    std::string dictionary = fmt::format(
        "{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", info.size_bytes > 1 ? '<' : '|',
        info.npy_descriptor, fmt::join(spec.shape.dims(), ", "), spec.shape.rank() == 1 ? "," : "");
    const size_t fixed_bytes = magic.size() + 4;
    const size_t unpadded_bytes = fixed_bytes + dictionary.size() + 1;
    dictionary.append((npy_alignment_bytes - unpadded_bytes % npy_alignment_bytes) % npy_alignment_bytes,
                      ' ');
    dictionary += '\n';
    assert(dictionary.size() <= 0xffff);
    std::string header(magic);
    header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
               static_cast<char>(dictionary.size() >> 8)};
    header += dictionary;
    assert(header.size() % npy_alignment_bytes == 0);
    return header;
}

}  // namespace goblin
