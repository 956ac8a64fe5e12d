// The steps of computing a task.
#include "app/worker/compute_job.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/tensor/file.hpp"
#include "core/work/hex.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

bool ComputeOrder::repeats_blob(size_t index) const {
    const ComputeInput& input = inputs[index];
    return !input.inline_bytes && std::any_of(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(index),
                                              [&](const ComputeInput& earlier) {
                                                  return !earlier.inline_bytes && earlier.name == input.name;
                                              });
}

std::vector<const ComputeInput*> ComputeOrder::blobs() const {
    std::vector<const ComputeInput*> blobs;
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!inputs[i].inline_bytes && !repeats_blob(i)) blobs.push_back(&inputs[i]);
    return blobs;
}

uint64_t ComputeOrder::blob_bytes() const {
    uint64_t bytes = 0;
    for (const ComputeInput* blob : blobs()) bytes = saturating_sum({bytes, blob->spec.size_bytes()});
    return bytes;
}

uint64_t inputs_bytes(const Graph& graph) {
    uint64_t bytes = 0;
    for (const TensorSpec& spec : graph.inputs) bytes = saturating_sum({bytes, spec.size_bytes()});
    return bytes;
}

fs::path output_file(const fs::path& folder, const AssignmentId& id, size_t output) {
    return folder / fmt::format("{}.{}", to_hex(id), output);
}

void remove_output_files(const fs::path& folder, const AssignmentId& id, size_t outputs) {
    std::error_code ignored;
    for (size_t i = 0; i < outputs; ++i) fs::remove(output_file(folder, id, i), ignored);
}

std::optional<Tensor> read_blob(const ComputeInput& input) {
    try {
        const File file = File::open_to_read(input.file);
        if (file.identity().size_bytes != input.spec.size_bytes()) return std::nullopt;
        Tensor tensor(input.spec);
        file.read_at(0, tensor.bytes());
        if (input.check && tensor_digest({}, tensor) != input.name.digest) return std::nullopt;
        return tensor;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::memory) throw;
        return std::nullopt;
    }
}

namespace {
class CallAtEnd {
  public:
    explicit CallAtEnd(const std::function<void()>& call) : call_(call) {}
    ~CallAtEnd() {
        if (call_) call_();
    }
    CallAtEnd(const CallAtEnd&) = delete;
    CallAtEnd& operator=(const CallAtEnd&) = delete;

  private:
    const std::function<void()>& call_;
};
}  // namespace

std::vector<Tensor> run_engine(Engine& engine, const ComputeOrder& order, std::span<const Tensor> inputs,
                               const RunControl& control, ComputeOutcome& outcome) {
    outcome.kind = ComputeOutcome::Kind::handed_back;
    try {
        order.before();
        const CallAtEnd after(order.after);
        const auto start = std::chrono::steady_clock::now();
        std::vector<Tensor> outputs = engine.run(order.graph, inputs, control);
        const auto took = std::chrono::steady_clock::now() - start;
        outcome.computed.compute_us =
            static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
        outcome.kind = ComputeOutcome::Kind::computed;
        return outputs;
    } catch (const Error& error) {
        outcome.reason = error.what();
        const bool task_is_wrong = error.kind() == ErrorKind::numeric || error.kind() == ErrorKind::input;
        if (task_is_wrong) outcome.kind = ComputeOutcome::Kind::failed;
        outcome.stopped = error.kind() == ErrorKind::cancelled;
    } catch (const std::bad_alloc&) {
        outcome.reason = "expected memory for the task, the system has none left";
    } catch (const std::exception& error) {
        outcome.kind = ComputeOutcome::Kind::failed;
        outcome.reason = error.what();
    }
    return {};
}

void store_outputs(const ComputeOrder& order, std::vector<Tensor> outputs, ComputeOutcome& outcome) {
    Computed& computed = outcome.computed;
    computed.in_files = std::any_of(outputs.begin(), outputs.end(), [](const Tensor& output) {
        return output.size_bytes() > limits::inline_tensor_bytes;
    });
    try {
        for (size_t i = 0; i < outputs.size(); ++i) {
            computed.digests.push_back(tensor_digest(order.key, outputs[i]));
            if (computed.in_files) {
                const fs::path path = output_file(order.outputs_folder, order.task.id, i);
                std::error_code ignored;
                fs::remove(path, ignored);  // of a computation that was cut off
                const File file = File::create(path);
                file.preallocate(outputs[i].size_bytes());
                file.write_at(0, outputs[i].bytes());
            } else {
                computed.outputs.push_back(message_of(frame_of(outputs[i])));
            }
        }
    } catch (const std::exception& error) {
        remove_output_files(order.outputs_folder, order.task.id, outputs.size());
        outcome.kind = ComputeOutcome::Kind::handed_back;
        outcome.reason = error.what();
        outcome.out_of_disk = true;
        computed = {};
    }
}

}  // namespace goblin::worker
