// A product over .npy files: reads panels of the operands, writes tiles of the output.
#include "labcli/jobs/product/product_job.hpp"

#include <cassert>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "core/error.hpp"
#include "core/tensor/file.hpp"
#include "core/tensor/npy_reader.hpp"
#include "core/tensor/npy_writer.hpp"
#include "labcli/jobs/product/product_specification.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;
using std::filesystem::path;

// What stays the same when a file gets another name.
json file_of(const FileIdentity& identity) {
    return {identity.device, identity.inode};
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
        : specification_(specification),
          a_(reopen_operand(specification, "a")),
          b_(reopen_operand(specification, "b")),
          target_(specification.at("output").get<std::string>()) {
        if (size_of_operands(a_, b_) != specification_.size)
            throw Error(ErrorKind::input,
                        "expected the operands that the job's specification describes, found {} and {}; "
                        "submit the job again",
                        a_.spec().text(), b_.spec().text());
        const std::string tag = specification.at("tag").get<std::string>();
        const Existing existing =
            specification.at("overwrite").get<bool>() ? Existing::replace : Existing::refuse;
        if (fresh) {
            output_ = NpyWriter::create(target_, tag, specification_.output(), existing);
            specification["output_file"] = file_of(output_->identity());
        } else {
            output_ = NpyWriter::resume(target_, tag, specification_.output(), existing);
            complete_ = !output_ && std::filesystem::exists(target_) && is_own_output(specification);
            if (!output_ && !complete_)
                throw Error(ErrorKind::io,
                            "{}: expected the unfinished output of this job beside it, found none; submit "
                            "the job again",
                            target_.string());
        }
    }

    PlanSummary summary() const override { return specification_.summary(); }
    uint64_t task_count() const override { return specification_.grid.tiles(); }
    bool is_product() const override { return true; }

    Graph graph(uint64_t task) const override {
        return product_graph(specification_.left_panel(specification_.grid.row_panel_of(task)),
                             specification_.right_panel(specification_.grid.col_panel_of(task)));
    }

    // Panels of A have even numbers, panels of B odd ones.
    std::vector<SliceNumber> slices(uint64_t task) const override {
        return {2 * specification_.grid.row_panel_of(task), 2 * specification_.grid.col_panel_of(task) + 1};
    }

    TensorSpec slice_spec(SliceNumber slice) const override {
        return slice % 2 == 0 ? specification_.left_panel(slice / 2) : specification_.right_panel(slice / 2);
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
        output_->write_block(specification_.grid.tile(task), outputs[0].bytes());
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
            block.row = panel * specification_.grid.tile_rows();
        else
            block.col = panel * specification_.grid.tile_cols();
        return block;
    }

    ProductSpecification specification_;
    NpyReader a_;
    NpyReader b_;
    path target_;
    std::shared_mutex finish_mutex_;  // merges share it, the end has it alone
    std::optional<NpyWriter> output_;
    bool whole_ = false;     // nothing but its name is missing
    bool complete_ = false;  // it has its name
};

}  // namespace

std::shared_ptr<Plan> open_product(json& specification, bool fresh) {
    return std::make_shared<ProductPlan>(specification, fresh);
}

PlanSummary summarize_product(const json& specification) {
    return ProductSpecification(specification).summary();
}

void discard_product(const json& specification) {
    std::filesystem::remove(npy_partial_path(specification.at("output").get<std::string>(),
                                             specification.at("tag").get<std::string>()));
}

}  // namespace goblin::lab
