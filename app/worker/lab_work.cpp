// Assignments from grant to decision.
#include "app/worker/lab_work.hpp"

#include <algorithm>
#include <cassert>

#include "app/worker/private_file.hpp"
#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/work/hex.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t deaths_allowed = 1;
constexpr uint64_t spoils_allowed = 3;
constexpr uint64_t duration_factor = 4;
constexpr size_t shown_id_digits = 8;

std::string died_reason() {
    return "the worker died twice computing it";
}

// Where it can't be written, a death would count against one task more.
void record_halt(Journal& journal, const AssignmentId& id) {
    try {
        journal.halted(id);
    } catch (const Error&) {
    }
}

// The book's entry for a grant that can't be worked on.
Assignment stub_of(const Grant& grant) {
    Assignment stub;
    stub.id = grant.assignment;
    stub.key = grant.key;
    return stub;
}

}  // namespace

LabWork::LabWork(fs::path lab_folder, const Digest& lab_key, BlobCache& cache, WhyNot why_not, Log& log)
    : folder_(std::move(lab_folder)),
      lab_key_(lab_key),
      cache_(cache),
      why_not_(std::move(why_not)),
      log_(log) {
    make_private_folder(folder_ / "blobs");
    make_private_folder(folder_ / "outputs");
    std::vector<JournalEntry> open;
    journal_.emplace(folder_ / "journal", open);
    account_for_journal();
    for (JournalEntry& entry : open) restore(std::move(entry));
    drop_stray_outputs();
    pin_waiting();  // so that only parts that nobody needs are dropped
    cache_.drop_stale_parts(lab_key_);
}

std::string LabWork::shown(const AssignmentId& id) const {
    return to_hex(id).substr(0, shown_id_digits);
}

// A record that can't be written is disk trouble, not the end.
bool LabWork::record(const std::function<void()>& write) {
    try {
        write();
        account_for_journal();
        return true;
    } catch (const Error& error) {
        disk_trouble_ = error.what();
        return false;
    }
}

void LabWork::account_for_journal() {
    const uint64_t bytes = journal_->disk_bytes();
    cache_.journal_takes(journal_takes_bytes_, bytes);
    journal_takes_bytes_ = bytes;
}

void LabWork::restore(JournalEntry entry) {
    const Grant& grant = entry.grant;
    if (entry.ended) {
        Assignment& stub = book_.add(stub_of(grant));
        stub.stage = Stage::ended;
        stub.ended = *entry.ended;
        return;
    }
    Assignment assignment;
    try {
        assignment = assignment_of(grant);
    } catch (const Error& error) {
        return end(book_.add(stub_of(grant)), ResultKind::failed, error.what());
    }
    assignment.deaths = entry.deaths;
    assignment.send_asked = entry.send_asked;
    Assignment& kept = book_.add(std::move(assignment));
    if (entry.computed && take_outputs(kept, std::move(*entry.computed))) return;
    if (entry.computed) record([&] { journal_->spoiled(kept.id); });
    if (kept.deaths > deaths_allowed) return end(kept, ResultKind::failed, died_reason());
    // The program or what the owner allows may have changed since.
    if (const auto objection = objection_to(kept)) end(kept, objection->kind, objection->reason);
}

// False when the files aren't there as they were.
bool LabWork::take_outputs(Assignment& assignment, Computed computed) {
    const auto& specs = assignment.output_specs;
    if (computed.digests.size() != specs.size()) return false;
    uint64_t bytes = 0;
    for (size_t i = 0; computed.in_files && i < specs.size(); ++i) {
        const auto identity = identity_of(output_file(folder_ / "outputs", assignment.id, i));
        if (!identity || identity->size_bytes != specs[i].size_bytes()) return false;
        bytes += specs[i].size_bytes();
    }
    if (!computed.in_files && computed.outputs.size() != specs.size()) return false;
    if (assignment.occupied_bytes == 0) cache_.occupy(assignment.occupied_bytes = bytes);
    assignment.doubted = computed.in_files;
    assignment.computed = std::move(computed);
    assignment.stage = Stage::computed;
    return true;
}

void LabWork::drop_stray_outputs() {
    std::error_code trouble;
    for (const auto& file : fs::directory_iterator(folder_ / "outputs", trouble)) {
        AssignmentId id{};
        const bool named = from_hex(file.path().stem().string(), id);
        const Assignment* assignment = named ? book_.find(id) : nullptr;
        if (assignment == nullptr || assignment->stage != Stage::computed) fs::remove(file.path(), trouble);
    }
}

void LabWork::granted(std::vector<Grant> grants, uint64_t memory_bytes) {
    for (Grant& grant : grants) {
        if (book_.find(grant.assignment) != nullptr) continue;  // it was on its way to us twice
        // One id computes once at a time: what ends first would be taken for the other. The lab sends it
        // again.
        if (leaving_.contains(grant.assignment)) continue;
        // The lab grants no more than we want. What is dropped here it sends again, since we don't list it.
        if (book_.size() >= limits::open_assignments) return;
        const uint64_t taken = bytes_in_memory();
        accept(std::move(grant), memory_bytes - std::min(memory_bytes, taken));
    }
}

// What speaks against working on it: the kind and reason of its end.
std::optional<Ended> LabWork::objection_to(const Assignment& assignment) const {
    if (assignment.task.contract != contract_version)
        return Ended{ResultKind::failed, fmt::format("expected a task of arithmetic contract {}, found {}",
                                                     contract_version, assignment.task.contract)};
    if (auto reason = why_not_(assignment.task.graph))
        return Ended{ResultKind::handed_back, *std::move(reason)};
    return std::nullopt;
}

// What speaks against keeping it, whether in memory or in the journal.
std::optional<std::string> LabWork::lack_of_room(const Grant& grant, const Assignment& assignment,
                                                 uint64_t free_memory_bytes) {
    if (assignment.memory_bytes > free_memory_bytes)
        return fmt::format(
            "expected tasks in hand to fit the memory for them, of which {} are free, found one of {}; the "
            "owner can allow more with --memory",
            size_text(free_memory_bytes), size_text(assignment.memory_bytes));
    const uint64_t record_bytes = Journal::record_bytes(grant);
    if (cache_.make_room(journal_->growth_bytes(record_bytes))) return std::nullopt;
    return fmt::format(
        "expected room on the disk for a task's record of {}, found none within the limit; the owner can "
        "allow more with --disk",
        size_text(record_bytes));
}

void LabWork::accept(Grant grant, uint64_t free_memory_bytes) {
    Assignment assignment;
    try {
        assignment = assignment_of(grant);
    } catch (const Error& error) {
        return refuse(std::move(grant), {ResultKind::failed, error.what()});
    }
    if (const auto objection = objection_to(assignment)) return refuse(std::move(grant), *objection);
    if (const auto lack = lack_of_room(grant, assignment, free_memory_bytes))
        return hand_back_unkept(grant, *lack);
    if (!record([&] { journal_->granted(grant); }))
        return refuse(std::move(grant), {ResultKind::handed_back, *disk_trouble_});
    log_.debug("task {}: in hand", shown(grant.assignment));
    book_.add(std::move(assignment));
}

void LabWork::refuse(Grant grant, const Ended& ended) {
    grant.task = {};  // what is refused need not be kept
    record([&] { journal_->granted(grant); });
    end(book_.add(stub_of(grant)), ended.kind, ended.reason);
}

// Of this the journal never knows: after a restart the lab sends it again, or gives it to others.
void LabWork::hand_back_unkept(const Grant& grant, const std::string& reason) {
    Assignment& stub = book_.add(stub_of(grant));
    stub.stage = Stage::ended;
    stub.ended = {ResultKind::handed_back, reason};
    ++tally_.handed_back;
    log_.info("a task was handed back: {}", reason);
}

void LabWork::end(Assignment& assignment, ResultKind kind, const std::string& reason) {
    unpin(assignment);
    drop_outputs(assignment);
    release_disk(assignment);
    assignment.stage = Stage::ended;
    assignment.in_flight = false;
    assignment.missing.clear();
    assignment.task = {};
    assignment.needs.clear();
    assignment.output_specs.clear();
    assignment.memory_bytes = 0;
    assignment.ended = {kind, plain_text(reason)};
    record([&] { journal_->ended(assignment.id, assignment.ended); });
    if (kind == ResultKind::failed) {
        ++tally_.failed;
        log_.warning("task {} failed: {}", shown(assignment.id), assignment.ended.reason);
    } else {
        ++tally_.handed_back;
        log_.info("a task was handed back: {}", assignment.ended.reason);
    }
}

void LabWork::close(const AssignmentId& id) {
    Assignment* assignment = book_.find(id);
    if (assignment == nullptr) return;
    if (assignment->stage == Stage::computing) leaving_.insert(id);
    unpin(*assignment);
    drop_outputs(*assignment);
    release_disk(*assignment);
    record([&] { journal_->closed(id); });
    book_.erase(id);
}

void LabWork::unpin(Assignment& assignment) {
    if (assignment.pinned) cache_.unpin(lab_key_, assignment.needs);
    assignment.pinned = false;
}

void LabWork::drop_outputs(Assignment& assignment) {
    if (assignment.stage != Stage::computed) return;
    if (assignment.computed.in_files)
        remove_output_files(folder_ / "outputs", assignment.id, assignment.output_specs.size());
    assignment.computed = {};
    release_disk(assignment);
}

void LabWork::release_disk(Assignment& assignment) {
    cache_.vacate(std::exchange(assignment.occupied_bytes, 0));
}

void LabWork::acknowledged(const std::vector<Receipt>& receipts, const std::vector<Result>& told) {
    std::map<AssignmentId, ResultKind> kinds;
    for (const Result& result : told) kinds.emplace(result.assignment, result.kind);
    for (const Receipt& receipt : receipts) {
        const auto kind = kinds.find(receipt.assignment);
        if (kind == kinds.end()) continue;
        if (receipt.kind == ReceiptKind::refused)
            log_.warning("task {}: the lab refused the result: {}", shown(receipt.assignment),
                         plain_text(receipt.reason));
        if (book_.acknowledge(receipt, kind->second)) close(receipt.assignment);
        kinds.erase(kind);
    }
    // What the lab passed over in silence is told again.
    for (const Result& result : told)
        if (kinds.contains(result.assignment)) book_.untold({result});
}

std::vector<AssignmentId> LabWork::decided(const std::vector<Decision>& decisions) {
    std::vector<AssignmentId> computing;
    for (const Decision& decision : decisions) {
        const Assignment* assignment = book_.find(decision.assignment);
        if (assignment == nullptr) continue;
        ++(decision.agreed ? tally_.accepted : tally_.disagreed);
        if (decision.agreed)
            log_.debug("task {}: accepted", shown(decision.assignment));
        else
            log_.warning("task {}: the lab disagreed: {}", shown(decision.assignment),
                         plain_text(decision.reason));
        if (assignment->stage == Stage::computing) computing.push_back(decision.assignment);
        close(decision.assignment);
    }
    return computing;
}

std::vector<AssignmentId> LabWork::cancelled(const std::vector<Cancel>& cancels) {
    std::vector<AssignmentId> computing;
    for (const Cancel& cancel : cancels) {
        const Assignment* assignment = book_.find(cancel.assignment);
        if (assignment == nullptr) continue;
        log_.info("task {}: cancelled by the lab: {}", shown(cancel.assignment), plain_text(cancel.reason));
        if (assignment->stage == Stage::computing) computing.push_back(cancel.assignment);
        close(cancel.assignment);
    }
    return computing;
}

void LabWork::send_asked(const std::vector<AssignmentId>& ids) {
    for (const AssignmentId& id : ids) {
        Assignment* assignment = book_.find(id);
        if (assignment == nullptr || assignment->stage == Stage::ended) continue;
        if (!assignment->send_asked) record([&] { journal_->send_asked(id); });
        assignment->send_asked = true;
        assignment->data_taken = false;
        assignment->uploaded.clear();
    }
}

std::optional<ComputeOrder> LabWork::next_order(const std::function<bool(const Graph&)>& fits) {
    for (Assignment* assignment : book_.in_stage(Stage::ready)) {
        if (!fits(assignment->task.graph)) continue;
        ComputeOrder order;
        order.task = {lab_key_, assignment->id};
        order.key = assignment->key;
        order.graph = assignment->task.graph;
        for (size_t i = 0; i < assignment->task.inputs.size(); ++i) {
            const TaskInput& input = assignment->task.inputs[i];
            const BlobName name{lab_key_, input.digest};
            order.inputs.push_back({assignment->task.graph.inputs[i], name, cache_.path_of(name),
                                    input.inline_bytes, !cache_.checked(name)});
        }
        order.outputs_folder = folder_ / "outputs";
        order.longest_ms = saturating_product({assignment->duration_ms, duration_factor});
        order.before = [journal = &*journal_, id = assignment->id] { journal->started(id); };
        // Its outputs are recorded later, while the next task computes already: a death then isn't its doing.
        order.after = [journal = &*journal_, id = assignment->id] { record_halt(*journal, id); };
        assignment->stage = Stage::computing;
        return order;
    }
    return std::nullopt;
}

void LabWork::compute_ended(const AssignmentId& id, ComputeOutcome outcome) {
    if (leaving_.erase(id) > 0)  // cancelled meanwhile
        return remove_output_files(folder_ / "outputs", id, limits::task_outputs);
    Assignment* assignment = book_.find(id);
    assert(assignment->stage == Stage::computing);
    switch (outcome.kind) {
        case ComputeOutcome::Kind::computed: {
            if (!outcome.computed.in_files) release_disk(*assignment);  // they go into the journal
            const bool kept = record([&] { journal_->computed(id, outcome.computed); });
            if (!kept) {
                remove_output_files(folder_ / "outputs", id, assignment->output_specs.size());
                return disk_failed(*assignment, *disk_trouble_);
            }
            const uint64_t us = outcome.computed.compute_us;
            [[maybe_unused]] const bool taken = take_outputs(*assignment, std::move(outcome.computed));
            assert(taken);
            assignment->doubted = false;
            unpin(*assignment);
            ++tally_.computed;
            log_.debug("task {}: computed in {}", shown(id), duration_text(us / 1000));
            return;
        }
        case ComputeOutcome::Kind::spoiled_input:
            for (const BlobName& name : outcome.spoiled) cache_.spoiled(name);
            log_.warning("task {}: an input in the cache was damaged and is fetched again", shown(id));
            unpin(*assignment);
            release_disk(*assignment);
            assignment->stage = Stage::waiting;
            if (++assignment->spoils > spoils_allowed)
                end(*assignment, ResultKind::handed_back, "the disk doesn't keep its inputs");
            return;
        case ComputeOutcome::Kind::failed:
            return end(*assignment, ResultKind::failed, outcome.reason);
        case ComputeOutcome::Kind::handed_back:
            if (outcome.stopped) return end(*assignment, ResultKind::handed_back, stop_reason_);
            if (outcome.out_of_disk) return disk_failed(*assignment, outcome.reason);
            return end(*assignment, ResultKind::handed_back, outcome.reason);
    }
}

// Nothing more fits on the disk: what isn't computed yet would meet the same end.
void LabWork::disk_failed(Assignment& assignment, const std::string& reason) {
    disk_trouble_ = reason;
    end(assignment, ResultKind::handed_back, reason);
    hand_back_unstarted(reason);
}

void LabWork::hand_back_unstarted(const std::string& reason) {
    for (const Stage stage : {Stage::waiting, Stage::fetching, Stage::ready})
        for (Assignment* assignment : book_.in_stage(stage))
            end(*assignment, ResultKind::handed_back, reason);
}

void LabWork::hand_back_computed(const std::string& reason) {
    for (Assignment* assignment : book_.in_stage(Stage::computed))
        end(*assignment, ResultKind::handed_back, reason);
}

void LabWork::abandon_computing() {
    for (Assignment* assignment : book_.in_stage(Stage::computing))
        record([&] { journal_->halted(assignment->id); });
}

}  // namespace goblin::worker
