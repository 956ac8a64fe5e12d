// The part of a lab's work that waits for transfers: inputs to be fetched, outputs to be uploaded.
#include <algorithm>
#include <cassert>

#include "app/worker/lab_work.hpp"
#include "core/graph/checked.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {
constexpr uint64_t wrong_fetches_allowed = 2;
}

void LabWork::pin_waiting() {
    for (Assignment* assignment : book_.in_stage(Stage::waiting)) {
        const BlobCache::Room room = cache_.pin(lab_key_, assignment->needs, assignment->outputs_disk_bytes);
        if (room == BlobCache::Room::later) return;
        if (room == BlobCache::Room::disk_full) return no_room_for(*assignment);
        if (room == BlobCache::Room::differs) {
            end(*assignment, ResultKind::handed_back,
                "expected one size for each input's digest, found two; the lab node names its inputs "
                "wrongly");
            continue;
        }
        if (room == BlobCache::Room::never) {
            end(*assignment, ResultKind::handed_back,
                fmt::format("expected inputs and outputs that fit {} of disk, found larger ones; the owner "
                            "can allow more with --disk",
                            size_text(cache_.limit_beside_journals_bytes())));
            continue;
        }
        assignment->pinned = true;
        assignment->occupied_bytes = assignment->outputs_disk_bytes;
        for (const BlobNeed& need : assignment->needs)
            if (!cache_.holds({lab_key_, need.digest})) assignment->missing.insert(need.digest);
        assignment->stage = assignment->missing.empty() ? Stage::ready : Stage::fetching;
    }
}

void LabWork::no_room_for(const Assignment& assignment) {
    uint64_t bytes = 0;
    for (const BlobNeed& need : assignment.needs) bytes = saturating_sum({bytes, need.spec.size_bytes()});
    disk_trouble_ = fmt::format("expected room for {} of inputs in {}, found its disk full; free some",
                                size_text(bytes), folder_.string());
    hand_back_unstarted(*disk_trouble_);
}

std::vector<BlobNeed> LabWork::fetches_due() {
    std::vector<BlobNeed> due;
    for (const Assignment* assignment : std::as_const(book_).in_stage(Stage::fetching)) {
        for (const BlobNeed& need : assignment->needs) {
            if (!assignment->missing.contains(need.digest) || fetches_.contains(need.digest)) continue;
            // The fetch holds the blob's place by itself: its file must not be dropped under it.
            [[maybe_unused]] const auto room = cache_.pin(lab_key_, std::span(&need, 1));
            assert(room == BlobCache::Room::made);
            fetches_.emplace(need.digest, need.spec);
            due.push_back(need);
        }
    }
    return due;
}

std::vector<Digest> LabWork::idle_fetches() const {
    std::vector<Digest> idle;
    for (const auto& [digest, spec] : fetches_) {
        const auto misses = [&](const Assignment* assignment) {
            return assignment->missing.contains(digest);
        };
        const auto fetching = book_.in_stage(Stage::fetching);
        if (std::none_of(fetching.begin(), fetching.end(), misses)) idle.push_back(digest);
    }
    return idle;
}

void LabWork::fetch_ended(const Digest& digest, const TransferOutcome& outcome) {
    const auto fetch = fetches_.find(digest);
    assert(fetch != fetches_.end());
    const BlobNeed need{digest, fetch->second};
    fetches_.erase(fetch);
    switch (outcome.kind) {
        case TransferOutcome::Kind::done:
            wrong_fetches_.erase(digest);
            cache_.landed({lab_key_, digest});
            for (Assignment* assignment : book_.in_stage(Stage::fetching))
                if (assignment->missing.erase(digest) > 0 && assignment->missing.empty())
                    assignment->stage = Stage::ready;
            break;
        case TransferOutcome::Kind::wrong:
            if (++wrong_fetches_[digest] <= wrong_fetches_allowed) break;  // once more, from the start
            wrong_fetches_.erase(digest);
            hand_back_all_that_miss(digest, outcome.reason);
            break;
        case TransferOutcome::Kind::refused:
            if (outcome.refusal.action == RefusalAction::drop_blob)
                hand_back_all_that_miss(digest, "the lab refused an input: " + outcome.reason);
            break;
        case TransferOutcome::Kind::disk:
            disk_trouble_ = outcome.reason;
            hand_back_unstarted(outcome.reason);
            break;
        case TransferOutcome::Kind::network:
        case TransferOutcome::Kind::spoiled:
        case TransferOutcome::Kind::stopped:
            break;  // goes on where it stopped, if anybody still wants it
    }
    cache_.unpin(lab_key_, std::span(&need, 1));
}

void LabWork::hand_back_all_that_miss(const Digest& digest, const std::string& reason) {
    for (Assignment* assignment : book_.in_stage(Stage::fetching))
        if (assignment->missing.contains(digest)) end(*assignment, ResultKind::handed_back, reason);
}

std::vector<UploadDue> LabWork::uploads_due() {
    std::vector<UploadDue> due;
    for (const Assignment* assignment : book_.in_stage(Stage::computed)) {
        const Computed& computed = assignment->computed;
        if (!assignment->send_asked || assignment->data_taken || !computed.in_files) continue;
        for (size_t i = 0; i < computed.digests.size(); ++i) {
            if (assignment->uploaded.contains(computed.digests[i])) continue;
            // Equal outputs have equal digests: one upload serves both.
            if (!uploads_.emplace(assignment->id, computed.digests[i]).second) continue;
            due.push_back({assignment->id, computed.digests[i], assignment->output_specs[i],
                           output_file(folder_ / "outputs", assignment->id, i),
                           assignment->doubted ? std::optional(assignment->key) : std::nullopt});
        }
    }
    return due;
}

void LabWork::upload_ended(const UploadDue& upload, const TransferOutcome& outcome) {
    uploads_.erase({upload.assignment, upload.digest});
    Assignment* assignment = book_.find(upload.assignment);
    if (assignment == nullptr || assignment->stage != Stage::computed) return;
    switch (outcome.kind) {
        case TransferOutcome::Kind::done:
        case TransferOutcome::Kind::wrong:
            assignment->uploaded.insert(upload.digest);
            break;
        case TransferOutcome::Kind::refused:
            if (outcome.refusal.action == RefusalAction::drop_blob)
                assignment->uploaded.insert(upload.digest);
            break;
        case TransferOutcome::Kind::spoiled:
        case TransferOutcome::Kind::disk:
            // The same bits come out when it is computed again.
            log_.warning("task {}: {}; it is computed again", shown(upload.assignment), outcome.reason);
            record([&] { journal_->spoiled(upload.assignment); });
            drop_outputs(*assignment);
            assignment->commitment_taken = assignment->in_flight = false;
            assignment->uploaded.clear();
            assignment->stage = Stage::waiting;
            return;
        case TransferOutcome::Kind::network:
        case TransferOutcome::Kind::stopped:
            return;
    }
}

uint64_t LabWork::bytes_in_memory() const {
    uint64_t bytes = 0;
    for (const Assignment* assignment : book_.all())
        bytes = saturating_sum({bytes, assignment->memory_bytes});
    return bytes;
}

}  // namespace goblin::worker
