// From what a person asks for to the specification of a product: everything is looked at before anything is
// computed.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.hpp"
#include "core/tensor/npy_reader.hpp"
#include "core/work/hex.hpp"
#include "core/work/identity.hpp"
#include "labcli/jobs/product/product_job.hpp"
#include "labcli/jobs/product/product_specification.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;
using std::filesystem::path;

NpyReader open_operand(const path& file, std::string_view what) {
    NpyReader reader(file);
    if (reader.spec().shape.rank() != 2)
        throw Error(
            ErrorKind::input,
            "{}: expected a matrix (two axes) for {}, found {}; reshape it in NumPy and save it again",
            file.string(), what, reader.spec().text());
    if (reader.spec().dtype == DType::boolean)
        throw Error(ErrorKind::input,
                    "{}: expected numbers for {}, found {}; cast it in NumPy and save it again",
                    file.string(), what, reader.spec().text());
    return reader;
}

// "ROWSxCOLS"
Grid grid_from_text(const ProductSize& size, const std::string& text) {
    int64_t rows = 0;
    int64_t cols = 0;
    const char* const end = text.data() + text.size();
    const auto [middle, row_error] = std::from_chars(text.data(), end, rows);
    const bool separated = row_error == std::errc{} && middle != end && *middle == 'x';
    const bool complete = separated && std::from_chars(middle + 1, end, cols).ptr == end;
    constexpr int64_t largest = int64_t{1} << 20;
    if (!complete || rows < 1 || cols < 1 || rows > largest || cols > largest ||
        rows * cols > (int64_t{1} << 23))
        throw Error(
            ErrorKind::usage,
            "expected a tile as ROWSxCOLUMNS of at most 2^23 elements, for example 1024x1024, found '{}'",
            text);
    return {size, std::min(rows, std::max<int64_t>(size.rows, 1)),
            std::min(cols, std::max<int64_t>(size.cols, 1))};
}

std::string required_path(const json& arguments, const char* name) {
    const std::string text = arguments.at(name).get<std::string>();
    if (!path(text).is_absolute())
        throw Error(ErrorKind::usage, "expected an absolute path for {}, found '{}'", name, text);
    return text;
}

// Looked at before anything is computed: what can't be written in the end is hours of volunteers' work.
void expect_usable_output(const path& output, bool overwrite) {
    namespace fs = std::filesystem;
    std::error_code unknown;  // what can't be looked at is refused when the output is created
    if (!output.has_filename() || fs::is_directory(output, unknown))
        throw Error(ErrorKind::usage,
                    "expected the name of a file for the output, found the folder {}; add a name, for "
                    "example {}",
                    output.string(), (output / "C.npy").string());
    if (output.extension() != ".npy")
        throw Error(ErrorKind::usage,
                    "expected an output whose name ends in .npy, found {}; use for example {}",
                    output.string(), path(output).replace_extension(".npy").string());
    const path folder = output.parent_path();
    if (!fs::is_directory(folder, unknown))
        throw Error(ErrorKind::usage,
                    "expected the folder {} for the output, found none; make it, or choose another",
                    folder.string());
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        throw Error(ErrorKind::usage,
                    "expected a folder for the output that the lab node may write to, found {} ({}); choose "
                    "another, or change who may write to it",
                    folder.string(), std::system_category().message(errno));
    if (!overwrite && fs::exists(fs::symlink_status(output, unknown)))
        throw Error(ErrorKind::usage,
                    "{}: expected no file of that name yet, found one; remove it or pass --overwrite",
                    output.string());
}

}  // namespace

json plan_product(const json& arguments, const Capacity& capacity) {
    const std::string a_path = required_path(arguments, "a");
    const std::string b_path = required_path(arguments, "b");
    const std::string output = required_path(arguments, "output");
    const bool overwrite = arguments.value("overwrite", false);
    const NpyReader a = open_operand(a_path, "A");
    const NpyReader b = open_operand(b_path, "B");
    const ProductSize size = size_of_operands(a, b);
    if (output == a_path || output == b_path)
        throw Error(ErrorKind::usage,
                    "expected an output beside the operands, found {} named as both; choose another output",
                    output);
    expect_usable_output(output, overwrite);
    const std::string tile = arguments.value("tile", "");
    const Grid grid = tile.empty() ? choose_grid(size, capacity) : grid_from_text(size, tile);
    return {{"a", a_path},
            {"b", b_path},
            {"output", output},
            {"overwrite", overwrite},
            {"a_identity", json_of(a.identity())},
            {"b_identity", json_of(b.identity())},
            {"rows", size.rows},
            {"depth", size.depth},
            {"cols", size.cols},
            {"dtype", std::string(name_of(size.dtype))},
            {"tile_rows", grid.tile_rows()},
            {"tile_cols", grid.tile_cols()},
            {"tag", to_hex(random_bytes<FixedBytes<8>>())}};
}

}  // namespace goblin::lab
