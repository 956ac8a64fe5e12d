// One task on its way through a device: reading its inputs, running the engine, storing its outputs.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/worker/blob_cache.hpp"
#include "app/worker/journal.hpp"
#include "core/engine/engine.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

// Ids are the labs' own: two labs may use the same.
struct TaskName {
    Digest lab;
    AssignmentId id{};
    friend auto operator<=>(const TaskName&, const TaskName&) = default;
};

struct ComputeInput {
    TensorSpec spec;
    BlobName name;
    std::filesystem::path file;         // where the blob lies
    std::optional<Bytes> inline_bytes;  // instead of a blob
    bool check = false;                 // compare the file with its digest
};

struct ComputeOrder {
    TaskName task;
    SecretKey key{};
    Graph graph;
    std::vector<ComputeInput> inputs;
    std::filesystem::path outputs_folder;  // large outputs go to output_file()
    uint64_t longest_ms = 0;               // computing is stopped after so long, and the task has failed
    std::function<void()> before;          // right before computing; an Error from it hands the task back
    std::function<void()> after;           // right after it, however it ended; throws nothing

    // Blobs among the inputs, each once.
    std::vector<const ComputeInput*> blobs() const;
    uint64_t blob_bytes() const;
    // Whether the inputs before number `index` hold the same blob.
    bool repeats_blob(size_t index) const;
};

struct ComputeOutcome {
    enum class Kind {
        computed,
        failed,         // by the task's own fault
        handed_back,    // by this computer's: no memory, no disk, or stopped
        spoiled_input,  // files of the cache don't hold what their names say
    };
    Kind kind = Kind::handed_back;
    std::string reason;
    Computed computed;
    std::vector<BlobName> spoiled;
    bool stopped = false;      // the owner asked
    bool out_of_disk = false;  // storing the outputs failed
};

// Bytes of all inputs; saturates.
uint64_t inputs_bytes(const Graph& graph);
// FOLDER/ID.N
std::filesystem::path output_file(const std::filesystem::path& folder, const AssignmentId& id, size_t output);
void remove_output_files(const std::filesystem::path& folder, const AssignmentId& id, size_t outputs);

// Empty when the file isn't the blob. Throws ErrorKind::memory.
std::optional<Tensor> read_blob(const ComputeInput& input);

// Runs the engine; fills the outcome's kind, reason and time. No exception leaves it.
std::vector<Tensor> run_engine(Engine& engine, const ComputeOrder& order, std::span<const Tensor> inputs,
                               const RunControl& control, ComputeOutcome& outcome);

// Digests the outputs and keeps them: in the outcome when all are small, else in files. No exception leaves
// it.
void store_outputs(const ComputeOrder& order, std::vector<Tensor> outputs, ComputeOutcome& outcome);

}  // namespace goblin::worker
