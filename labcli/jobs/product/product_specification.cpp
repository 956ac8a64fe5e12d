// Reads specifications; says what they amount to.
#include "labcli/jobs/product/product_specification.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/graph/graph.hpp"
#include "core/work/quantity.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

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

}  // namespace

ProductSpecification::ProductSpecification(const json& stored)
    : size{stored_length(stored, "rows", 0), stored_length(stored, "depth", 0),
           stored_length(stored, "cols", 0), stored_dtype(stored)},
      grid(size, stored_length(stored, "tile_rows", 1), stored_length(stored, "tile_cols", 1)) {}

TensorSpec ProductSpecification::left_panel(uint64_t panel) const {
    const int64_t first = static_cast<int64_t>(panel) * grid.tile_rows();
    return {size.dtype, Shape{std::min(grid.tile_rows(), size.rows - first), size.depth}};
}

TensorSpec ProductSpecification::right_panel(uint64_t panel) const {
    const int64_t first = static_cast<int64_t>(panel) * grid.tile_cols();
    return {size.dtype, Shape{size.depth, std::min(grid.tile_cols(), size.cols - first)}};
}

TensorSpec ProductSpecification::output() const {
    return output_specs(product_graph(size.left(), size.right()))[0];
}

PlanSummary ProductSpecification::summary() const {
    const uint64_t element_bytes = size_of(size.dtype);
    const auto length = [](int64_t value) { return static_cast<uint64_t>(value); };
    PlanSummary summary;
    summary.tasks = grid.tiles();
    summary.has_floats = dtype_info(size.dtype).is_float;
    summary.flops = saturating_product({2, length(size.rows), length(size.depth), length(size.cols)});
    if (summary.tasks > 0) {
        const GraphCost cost = cost_of(product_graph(left_panel(0), right_panel(0)));
        summary.flops_per_task = cost.flops;
        summary.memory_per_task_bytes = cost.memory_bytes;
    }
    summary.bytes_down =
        saturating_product({element_bytes, length(size.depth),
                            saturating_sum({saturating_product({grid.col_panels(), length(size.rows)}),
                                            saturating_product({grid.row_panels(), length(size.cols)})})});
    summary.bytes_up = output().size_bytes();
    summary.text =
        fmt::format("{}×{}×{} {} in {} of {}×{}", size.rows, size.depth, size.cols, name_of(size.dtype),
                    count_text(grid.tiles(), "tile"), grid.tile_rows(), grid.tile_cols());
    return summary;
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

json json_of(const FileIdentity& identity) {
    return {identity.device, identity.inode, identity.size_bytes, identity.mtime_ns, identity.ctime_ns};
}

FileIdentity identity_of_json(const json& stored) {
    return {stored.at(0).get<uint64_t>(), stored.at(1).get<uint64_t>(), stored.at(2).get<uint64_t>(),
            stored.at(3).get<int64_t>(), stored.at(4).get<int64_t>()};
}

}  // namespace goblin::lab
