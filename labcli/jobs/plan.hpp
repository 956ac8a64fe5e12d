// Plan: how one job becomes tasks and how accepted results become its output. A new kind of computation is a
// new plan.
//
// Lazy: a job of a million tasks is a range of numbers until a task is handed out. Reading methods are safe
// from several threads; merge() too, for different tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/check/matrix_source.hpp"
#include "core/graph/graph.hpp"
#include "core/tensor/block.hpp"
#include "core/tensor/file.hpp"
#include "core/tensor/tensor.hpp"
#include "labcli/records/syncable.hpp"

namespace goblin::lab {

// A part of the researcher's files, cut out when asked for, never copied beside them. Numbered by the plan;
// several tasks share one.
using SliceNumber = uint64_t;

// Where a slice's bytes are. Equal origins are equal bytes, in other jobs, too: a file that changes gets
// another identity.
struct SliceOrigin {
    FileIdentity file;
    Block part;
    friend auto operator<=>(const SliceOrigin&, const SliceOrigin&) = default;
};

// A task is a number of 27 bits, and each takes a bit of memory.
inline constexpr uint64_t most_tasks = uint64_t{1} << 27;

struct PlanSummary {
    uint64_t tasks = 0;
    uint64_t flops = 0;
    uint64_t flops_per_task = 0;  // of the largest task
    uint64_t memory_per_task_bytes = 0;
    uint64_t bytes_down = 0;  // to contributors, when each slice travels once per task
    uint64_t bytes_up = 0;
    bool has_floats = false;
    std::string text;  // "8192×8192×8192 f32 in tiles of 2048×2048"
};

class Plan : public Syncable {
  public:
    virtual PlanSummary summary() const = 0;
    virtual uint64_t task_count() const = 0;
    virtual Graph graph(uint64_t task) const = 0;
    // One slice for each input of the graph.
    virtual std::vector<SliceNumber> slices(uint64_t task) const = 0;
    virtual TensorSpec slice_spec(SliceNumber slice) const = 0;
    virtual SliceOrigin slice_origin(SliceNumber slice) const = 0;
    // Any range of the slice's row-major little-endian bytes.
    virtual void read_slice(SliceNumber slice, uint64_t offset_bytes, std::span<std::byte> target) const = 0;
    // Throws ErrorKind::input when a file changed since the job was submitted.
    virtual void check_inputs() const = 0;
    // Puts an accepted task's outputs into place. sync() makes all that was merged before durable.
    virtual void merge(uint64_t task, std::span<const Tensor> outputs) = 0;
    // All tasks are merged: the output is complete and gets its name, durably. May be called again after a
    // crash. When the name can't be given, what it throws says where the output is and what to type.
    virtual void finish() = 0;
    // Removes what is unfinished: not an output that only lacks its name, which is somebody's computed work.
    virtual void discard() = 0;
    // Whether the tasks are matrix products of their two slices: those can be verified by the product check,
    // and a dispute about one element settled without computing the rest.
    virtual bool is_product() const = 0;
    // A slice of such a task, read block by block. Must not outlive the plan.
    virtual std::unique_ptr<MatrixSource> slice_matrix(SliceNumber slice) const = 0;
};

}  // namespace goblin::lab
