// Keeps the open assignments of one lab.
#include "app/worker/assignment_book.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

#include "core/graph/checked.hpp"

namespace goblin::worker {

namespace {

// Leaves half of an exchange for holdings, reasons and heads.
constexpr uint64_t results_bytes = limits::exchange_bytes / 2;

std::optional<ResultKind> untold_kind(const Assignment& assignment) {
    if (assignment.in_flight) return std::nullopt;
    if (assignment.stage == Stage::ended) return assignment.ended.kind;
    if (assignment.stage != Stage::computed) return std::nullopt;
    if (!assignment.commitment_taken) return ResultKind::committed;
    const bool data_wanted =
        assignment.send_asked && assignment.outputs_ride_inline() && !assignment.data_taken;
    return data_wanted ? std::optional(ResultKind::data) : std::nullopt;
}

Result result_of(const Assignment& assignment, ResultKind kind) {
    Result result;
    result.assignment = assignment.id;
    result.kind = kind;
    switch (kind) {
        case ResultKind::committed:
            result.digests = assignment.computed.digests;
            result.compute_us = assignment.computed.compute_us;
            break;
        case ResultKind::data:
            result.outputs = assignment.computed.outputs;
            break;
        case ResultKind::failed:
        case ResultKind::handed_back:
            result.reason = assignment.ended.reason;
            break;
    }
    return result;
}

uint64_t weight_bytes(const Result& result) {
    uint64_t bytes = 256 + result.reason.size() + result.digests.size() * 40;
    for (const FrameMessage& output : result.outputs) bytes += output.bytes.size() + 128;
    return bytes;
}

template <typename Pointers>
void sort_by_arrival(Pointers& assignments) {
    std::sort(assignments.begin(), assignments.end(),
              [](const auto* a, const auto* b) { return a->arrival < b->arrival; });
}

bool not_computed_yet(Stage stage) {
    return stage < Stage::computed;
}

uint64_t sum_of_sizes(const std::vector<TensorSpec>& specs) {
    uint64_t bytes = 0;
    for (const TensorSpec& spec : specs) bytes = saturating_sum({bytes, spec.size_bytes()});
    return bytes;
}

bool ride_inline(const std::vector<TensorSpec>& outputs) {
    return std::all_of(outputs.begin(), outputs.end(), [](const TensorSpec& spec) {
        return spec.size_bytes() <= limits::inline_tensor_bytes;
    });
}

uint64_t memory_of(const Assignment& assignment) {
    const Graph& graph = assignment.task.graph;
    uint64_t bytes = sizeof(Assignment) + assignment.output_specs.size() * sizeof(TensorSpec) +
                     assignment.needs.size() * sizeof(BlobNeed);
    for (const TaskInput& input : assignment.task.inputs) {
        bytes += sizeof(TaskInput) + sizeof(TensorSpec);
        if (input.inline_bytes) bytes += input.inline_bytes->size();
    }
    for (const Node& node : graph.nodes) bytes += sizeof(Node) + node.inputs.size() * sizeof(uint32_t);
    if (ride_inline(assignment.output_specs)) bytes += sum_of_sizes(assignment.output_specs);
    return bytes;
}

}  // namespace

Assignment assignment_of(Grant grant) {
    Assignment assignment;
    assignment.id = grant.assignment;
    assignment.key = grant.key;
    assignment.duration_ms = grant.duration_ms;
    assignment.task = task_of(std::move(grant.task));
    assignment.output_specs = assignment.task.outputs();
    assignment.flops = cost_of(assignment.task.graph).flops;
    for (size_t i = 0; i < assignment.task.inputs.size(); ++i) {
        const TaskInput& input = assignment.task.inputs[i];
        if (!input.inline_bytes) assignment.needs.push_back({input.digest, assignment.task.graph.inputs[i]});
    }
    assignment.memory_bytes = memory_of(assignment);
    const uint64_t outputs_bytes = sum_of_sizes(assignment.output_specs);
    assignment.outputs_disk_bytes =
        ride_inline(assignment.output_specs) ? Journal::most_growth_bytes(outputs_bytes) : outputs_bytes;
    return assignment;
}

Assignment& AssignmentBook::add(Assignment assignment) {
    assignment.arrival = ++arrivals_;
    const AssignmentId id = assignment.id;
    const auto [place, fresh] = assignments_.emplace(id, std::move(assignment));
    assert(fresh);
    return place->second;
}

Assignment* AssignmentBook::find(const AssignmentId& id) {
    const auto found = assignments_.find(id);
    return found == assignments_.end() ? nullptr : &found->second;
}

void AssignmentBook::erase(const AssignmentId& id) {
    assignments_.erase(id);
}

size_t AssignmentBook::count(Stage stage) const {
    return static_cast<size_t>(
        std::count_if(assignments_.begin(), assignments_.end(),
                      [stage](const auto& entry) { return entry.second.stage == stage; }));
}

std::vector<Assignment*> AssignmentBook::in_stage(Stage stage) {
    std::vector<Assignment*> found;
    for (auto& [id, assignment] : assignments_)
        if (assignment.stage == stage) found.push_back(&assignment);
    sort_by_arrival(found);
    return found;
}

std::vector<const Assignment*> AssignmentBook::in_stage(Stage stage) const {
    std::vector<const Assignment*> found = all();
    std::erase_if(found, [stage](const Assignment* assignment) { return assignment->stage != stage; });
    return found;
}

std::vector<const Assignment*> AssignmentBook::all() const {
    std::vector<const Assignment*> all;
    for (const auto& [id, assignment] : assignments_) all.push_back(&assignment);
    sort_by_arrival(all);
    return all;
}

std::vector<AssignmentId> AssignmentBook::holding() const {
    std::vector<AssignmentId> ids;
    for (const auto& [id, assignment] : assignments_) ids.push_back(id);
    return ids;
}

uint64_t AssignmentBook::flops_ahead() const {
    uint64_t flops = 0;
    for (const auto& [id, assignment] : assignments_)
        if (not_computed_yet(assignment.stage)) flops = saturating_sum({flops, assignment.flops});
    return flops;
}

size_t AssignmentBook::tasks_ahead() const {
    return static_cast<size_t>(std::count_if(assignments_.begin(), assignments_.end(), [](const auto& entry) {
        return not_computed_yet(entry.second.stage);
    }));
}

bool Assignment::delivered() const {
    if (outputs_ride_inline()) return data_taken;
    return std::all_of(computed.digests.begin(), computed.digests.end(),
                       [this](const Digest& digest) { return uploaded.contains(digest); });
}

bool AssignmentBook::owes_numbers() const {
    return std::any_of(assignments_.begin(), assignments_.end(), [](const auto& entry) {
        return entry.second.stage == Stage::computed && !entry.second.delivered();
    });
}

bool AssignmentBook::has_something_to_say() const {
    return std::any_of(assignments_.begin(), assignments_.end(),
                       [](const auto& entry) { return untold_kind(entry.second).has_value(); });
}

std::vector<Result> AssignmentBook::take_results() {
    std::vector<Assignment*> telling;
    for (auto& [id, assignment] : assignments_)
        if (untold_kind(assignment)) telling.push_back(&assignment);
    sort_by_arrival(telling);
    std::vector<Result> results;
    uint64_t bytes = 0;
    for (Assignment* assignment : telling) {
        Result result = result_of(*assignment, *untold_kind(*assignment));
        bytes += weight_bytes(result);
        if (!results.empty() && (bytes > results_bytes || results.size() == limits::exchange_results)) break;
        assignment->in_flight = true;
        results.push_back(std::move(result));
    }
    return results;
}

void AssignmentBook::untold(const std::vector<Result>& results) {
    for (const Result& result : results)
        if (Assignment* assignment = find(result.assignment)) assignment->in_flight = false;
}

bool AssignmentBook::acknowledge(const Receipt& receipt, ResultKind told) {
    Assignment* assignment = find(receipt.assignment);
    if (assignment == nullptr) return false;
    assignment->in_flight = false;
    // Numbers that a lab didn't ask for, as after its restart, stay here: it asks again, or tells the end.
    if (receipt.kind == ReceiptKind::refused && told != ResultKind::data) return true;
    switch (told) {
        case ResultKind::committed:
            assignment->commitment_taken = true;
            return false;
        case ResultKind::data:
            assignment->data_taken = true;
            return false;
        case ResultKind::failed:
        case ResultKind::handed_back:
            return true;
    }
    return false;
}

}  // namespace goblin::worker
