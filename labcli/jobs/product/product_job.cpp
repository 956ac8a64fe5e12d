// A product over .npy files: reads panels of the operands, writes tiles of the output.
#include "labcli/jobs/product/product_job.hpp"

#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <shared_mutex>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/tensor/file.hpp"
#include "core/tensor/npy_reader.hpp"
#include "core/tensor/npy_writer.hpp"
#include "core/work/hex.hpp"
#include "core/work/identity.hpp"
#include "core/work/quantity.hpp"
#include "labcli/jobs/product/grid.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;
using std::filesystem::path;

json json_of(const FileIdentity& identity) {
    return {identity.device, identity.inode, identity.size_bytes, identity.mtime_ns, identity.ctime_ns};
}

// What stays the same when a file gets another name.
json file_of(const FileIdentity& identity) {
    return {identity.device, identity.inode};
}

FileIdentity identity_of_json(const json& stored) {
    return {stored.at(0).get<uint64_t>(), stored.at(1).get<uint64_t>(), stored.at(2).get<uint64_t>(),
            stored.at(3).get<int64_t>(), stored.at(4).get<int64_t>()};
}

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

NpyReader reopen_operand(const json& specification, const char* which) {
    NpyReader reader(path(specification.at(which).get<std::string>()));
    if (reader.identity() != identity_of_json(specification.at(std::string(which) + "_identity")))
        throw Error(ErrorKind::input,
                    "{}: expected the file as it was when the job was submitted, found it changed; submit "
                    "the job again",
                    reader.path().string());
    return reader;
}

ProductSize size_of_operands(const NpyReader& a, const NpyReader& b) {
    const std::string found = fmt::format("{} of {} and {} of {}", a.path().string(), a.spec().text(),
                                          b.path().string(), b.spec().text());
    if (a.spec().dtype != b.spec().dtype)
        throw Error(ErrorKind::input,
                    "expected A and B of one type, found {}; cast one of them in NumPy and save it again",
                    found);
    if (a.spec().shape[1] != b.spec().shape[0])
        throw Error(ErrorKind::input,
                    "expected as many columns in A as rows in B, found {}; transpose one of them, or give "
                    "the files in the "
                    "other order",
                    found);
    const TensorSpec c = output_specs(product_graph(a.spec(), b.spec()))[0];
    return {c.shape[0], a.spec().shape[1], c.shape[1], a.spec().dtype};
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

// A stored specification comes from a file: what it says is looked at before anything relies on it.
int64_t stored_length(const json& specification, const char* name, int64_t least) {
    const auto length = specification.at(name).get<int64_t>();
    if (length < least || length > max_elements)
        throw Error(ErrorKind::input, "expected {} from {} to {} in the job's specification, found {}", name,
                    least, max_elements, length);
    return length;
}

DType stored_dtype(const json& specification) {
    const auto name = specification.at("dtype").get<std::string>();
    const std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype)
        throw Error(ErrorKind::input,
                    "expected an element type that this goblin-lab knows in the job's specification, found "
                    "'{}'",
                    name);
    return *dtype;
}

// What a stored specification says, with nothing opened.
struct Layout {
    ProductSize size;
    Grid grid;

    explicit Layout(const json& specification)
        : size{stored_length(specification, "rows", 0), stored_length(specification, "depth", 0),
               stored_length(specification, "cols", 0), stored_dtype(specification)},
          grid(size, stored_length(specification, "tile_rows", 1),
               stored_length(specification, "tile_cols", 1)) {}

    TensorSpec left_panel(uint64_t panel) const {
        const int64_t first = static_cast<int64_t>(panel) * grid.tile_rows();
        return {size.dtype, Shape{std::min(grid.tile_rows(), size.rows - first), size.depth}};
    }
    TensorSpec right_panel(uint64_t panel) const {
        const int64_t first = static_cast<int64_t>(panel) * grid.tile_cols();
        return {size.dtype, Shape{size.depth, std::min(grid.tile_cols(), size.cols - first)}};
    }
    TensorSpec output() const { return output_specs(product_graph(size.left(), size.right()))[0]; }
};

// A panel of an operand, read from its file block by block.
class PanelMatrix final : public MatrixSource {
  public:
    PanelMatrix(const NpyReader& reader, const Block& panel)
        : MatrixSource(reader.spec().dtype, panel.rows, panel.cols), reader_(reader), panel_(panel) {}

    MatrixView view(const Block& block, Workspace& buffer) const override {
        const Block part{panel_.row + block.row, panel_.col + block.col, block.rows, block.cols};
        const size_t size_bytes = static_cast<size_t>(part.elements()) * size_of(dtype());
        std::byte* const elements = buffer.reserve(size_bytes);
        reader_.read_block(part, {elements, size_bytes});
        return {elements, block.cols};
    }

  private:
    const NpyReader& reader_;
    Block panel_;
};

class ProductPlan final : public Plan {
  public:
    ProductPlan(json& specification, bool fresh)
        : layout_(specification),
          a_(reopen_operand(specification, "a")),
          b_(reopen_operand(specification, "b")),
          target_(specification.at("output").get<std::string>()) {
        if (size_of_operands(a_, b_) != layout_.size)
            throw Error(ErrorKind::input,
                        "expected the operands that the job's specification describes, found {} and {}; "
                        "submit the job again",
                        a_.spec().text(), b_.spec().text());
        const std::string tag = specification.at("tag").get<std::string>();
        const Existing existing =
            specification.at("overwrite").get<bool>() ? Existing::replace : Existing::refuse;
        if (fresh) {
            output_ = NpyWriter::create(target_, tag, layout_.output(), existing);
            specification["output_file"] = file_of(output_->identity());
        } else {
            output_ = NpyWriter::resume(target_, tag, layout_.output(), existing);
            complete_ = !output_ && std::filesystem::exists(target_) && is_own_output(specification);
            if (!output_ && !complete_)
                throw Error(ErrorKind::io,
                            "{}: expected the unfinished output of this job beside it, found none; submit "
                            "the job again",
                            target_.string());
        }
    }

    PlanSummary summary() const override { return summarize(layout_); }
    uint64_t task_count() const override { return layout_.grid.tiles(); }
    bool is_product() const override { return true; }

    Graph graph(uint64_t task) const override {
        return product_graph(layout_.left_panel(layout_.grid.row_panel_of(task)),
                             layout_.right_panel(layout_.grid.col_panel_of(task)));
    }

    // Panels of A have even numbers, panels of B odd ones.
    std::vector<SliceNumber> slices(uint64_t task) const override {
        return {2 * layout_.grid.row_panel_of(task), 2 * layout_.grid.col_panel_of(task) + 1};
    }

    TensorSpec slice_spec(SliceNumber slice) const override {
        return slice % 2 == 0 ? layout_.left_panel(slice / 2) : layout_.right_panel(slice / 2);
    }

    SliceOrigin slice_origin(SliceNumber slice) const override {
        return {operand_of(slice).identity(), place_of(slice)};
    }

    void read_slice(SliceNumber slice, uint64_t offset_bytes, std::span<std::byte> target) const override {
        operand_of(slice).read_block_bytes(place_of(slice), offset_bytes, target);
    }

    std::unique_ptr<MatrixSource> slice_matrix(SliceNumber slice) const override {
        return std::make_unique<PanelMatrix>(operand_of(slice), place_of(slice));
    }

    void check_inputs() const override {
        for (const NpyReader* reader : {&a_, &b_})
            if (!reader->unchanged())
                throw Error(ErrorKind::input,
                            "{}: expected the file as it was when the job was submitted, found it changed; "
                            "submit the job again",
                            reader->path().string());
    }

    void merge(uint64_t task, std::span<const Tensor> outputs) override {
        assert(outputs.size() == 1);
        const std::shared_lock lock(finish_mutex_);
        if (!output_)
            throw Error(ErrorKind::failed, "expected an unfinished output, found it finished or discarded");
        output_->write_block(layout_.grid.tile(task), outputs[0].bytes());
    }

    void sync() override {
        const std::shared_lock lock(finish_mutex_);
        if (output_) output_->sync();
    }

    void finish() override {
        const std::unique_lock lock(finish_mutex_);
        if (complete_) return;
        if (!output_) throw Error(ErrorKind::failed, "expected an unfinished output, found it discarded");
        check_inputs();
        output_->sync();
        whole_ = true;
        output_->finish();
        output_.reset();
        complete_ = true;
    }

    void discard() override {
        std::optional<NpyWriter> given_up;
        {
            const std::unique_lock lock(finish_mutex_);
            given_up = std::exchange(output_, std::nullopt);
            if (whole_) return;
        }
        // Closing a large file takes long; nobody who merges waits for it.
        if (given_up) given_up->discard();
    }

    static PlanSummary summarize(const Layout& layout) {
        const Grid& grid = layout.grid;
        const uint64_t element_bytes = size_of(layout.size.dtype);
        const auto length = [](int64_t value) { return static_cast<uint64_t>(value); };
        PlanSummary summary;
        summary.tasks = grid.tiles();
        summary.has_floats = dtype_info(layout.size.dtype).is_float;
        summary.flops = saturating_product(
            {2, length(layout.size.rows), length(layout.size.depth), length(layout.size.cols)});
        if (summary.tasks > 0) {
            const GraphCost cost = cost_of(product_graph(layout.left_panel(0), layout.right_panel(0)));
            summary.flops_per_task = cost.flops;
            summary.memory_per_task_bytes = cost.memory_bytes;
        }
        summary.bytes_down = saturating_product(
            {element_bytes, length(layout.size.depth),
             saturating_sum({saturating_product({grid.col_panels(), length(layout.size.rows)}),
                             saturating_product({grid.row_panels(), length(layout.size.cols)})})});
        summary.bytes_up = layout.output().size_bytes();
        summary.text = fmt::format("{}×{}×{} {} in {} of {}×{}", layout.size.rows, layout.size.depth,
                                   layout.size.cols, name_of(layout.size.dtype),
                                   count_text(grid.tiles(), "tile"), grid.tile_rows(), grid.tile_cols());
        return summary;
    }

  private:
    // The file that is there must be this job's own: one to be replaced has another inode.
    bool is_own_output(const json& specification) const {
        if (!specification.contains("output_file"))
            throw Error(ErrorKind::io,
                        "{}: expected the job's record to say whether this file is its output, found a "
                        "record of an earlier goblin-lab, which doesn't; it may be complete: compare it, or "
                        "submit the job again with another output",
                        target_.string());
        return file_of(File::open_to_read(target_).identity()) == specification.at("output_file");
    }
    const NpyReader& operand_of(SliceNumber slice) const { return slice % 2 == 0 ? a_ : b_; }
    Block place_of(SliceNumber slice) const {
        const TensorSpec spec = slice_spec(slice);
        const auto panel = static_cast<int64_t>(slice / 2);
        Block block{0, 0, spec.shape[0], spec.shape[1]};
        if (slice % 2 == 0)
            block.row = panel * layout_.grid.tile_rows();
        else
            block.col = panel * layout_.grid.tile_cols();
        return block;
    }

    Layout layout_;
    NpyReader a_;
    NpyReader b_;
    path target_;
    std::shared_mutex finish_mutex_;  // merges share it, the end has it alone
    std::optional<NpyWriter> output_;
    bool whole_ = false;     // nothing but its name is missing
    bool complete_ = false;  // it has its name
};

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

std::shared_ptr<Plan> open_product(json& specification, bool fresh) {
    return std::make_shared<ProductPlan>(specification, fresh);
}

PlanSummary summarize_product(const json& specification) {
    return ProductPlan::summarize(Layout(specification));
}

void discard_product(const json& specification) {
    std::filesystem::remove(npy_partial_path(specification.at("output").get<std::string>(),
                                             specification.at("tag").get<std::string>()));
}

}  // namespace goblin::lab
