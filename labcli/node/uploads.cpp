// Holds uploads in memory, within a budget.
#include "labcli/node/uploads.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"
#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

// Before an upload's speed counts: for its connection, its first leaf and what stands in front of it.
constexpr uint64_t speed_grace_ms = 5'000;

// What a contributor uploads once serves all of its outputs with that digest.
uint64_t memory_of(const ExchangeDesk::UploadPlace& place) {
    return place.spec.size_bytes() * place.outputs.size();
}

}  // namespace

UploadBudget::Reservation UploadBudget::reserve(const std::shared_ptr<UploadBudget>& budget,
                                                uint64_t size_bytes) {
    const std::lock_guard lock(budget->mutex_);
    if (size_bytes > budget->free_bytes_) return nullptr;
    budget->free_bytes_ -= size_bytes;
    return {budget.get(), [budget, size_bytes](const void*) {
                const std::lock_guard release(budget->mutex_);
                budget->free_bytes_ += size_bytes;
            }};
}

uint64_t UploadBudget::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return free_bytes_;
}

uint64_t Upload::leaves_held() const {
    const std::lock_guard lock(mutex_);
    return leaves_held_;
}

bool Upload::wanted() const {
    const std::lock_guard lock(mutex_);
    return output_.has_value();
}

void Upload::write_leaf(uint64_t index, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (!output_)
        throw Error(ErrorKind::cancelled,
                    "expected an upload that the lab still takes, found one that is over; ask how far it is");
    assert(index == leaves_held_ && bytes.size() == leaf_length(size_bytes(), index));
    if (!bytes.empty())
        std::memcpy(output_->tensor.bytes().data() + index * leaf_size_bytes, bytes.data(), bytes.size());
    ++leaves_held_;
}

std::optional<ArrivedOutput> Upload::take() {
    const std::lock_guard lock(mutex_);
    assert(!output_ || leaves_held_ == leaf_count(size_bytes()));
    return std::exchange(output_, std::nullopt);
}

void Upload::give_way() {
    const std::lock_guard lock(mutex_);
    output_.reset();
    leaves_held_ = 0;
}

bool Uploads::is_late(const Entry& entry, uint64_t now_ms) {
    const uint64_t due_bytes = (entry.upload->leaves_held() + 1) * leaf_size_bytes;
    return now_ms > entry.opened_ms + speed_grace_ms + due_bytes * 1000 / limits::slow_link_rate;
}

void Uploads::make_room(uint64_t size_bytes, uint64_t now_ms) {
    std::vector<Entry*> late;
    uint64_t possible_bytes = budget_->free_bytes();
    for (auto& [computer, uploads] : by_computer_)
        for (auto& [digest, entry] : uploads)
            if (entry.upload && is_late(entry, now_ms)) {
                late.push_back(&entry);
                possible_bytes += memory_of(entry.upload->place());
            }
    if (possible_bytes < size_bytes) {
        const uint64_t free_before = budget_->free_bytes();
        make_more_room_(size_bytes - possible_bytes);
        possible_bytes += budget_->free_bytes() - free_before;
    }
    if (possible_bytes < size_bytes) return;
    const auto rate = [&](const Entry* entry) {
        return static_cast<double>(entry->upload->leaves_held() + 1) /
               static_cast<double>(now_ms - entry->opened_ms);
    };
    std::sort(late.begin(), late.end(), [&](const Entry* a, const Entry* b) { return rate(a) < rate(b); });
    for (Entry* const entry : late) {
        if (budget_->free_bytes() >= size_bytes) return;
        entry->upload->give_way();
        entry->upload.reset();
    }
}

std::shared_ptr<Upload> Uploads::open(ComputerId computer, const Digest& digest,
                                      const ExchangeDesk::UploadPlace& place, uint64_t now_ms) {
    auto& uploads = by_computer_[computer];
    const auto found = uploads.find(digest);
    const bool known = found != uploads.end();
    if (known && found->second.upload) return found->second.upload;
    const uint64_t size_bytes = memory_of(place);
    // Who gave way takes what is free, and makes nobody else give way.
    if (!known) make_room(size_bytes, now_ms);
    UploadBudget::Reservation reservation = UploadBudget::reserve(budget_, size_bytes);
    if (!reservation) return nullptr;
    auto upload = std::make_shared<Upload>(place, std::move(reservation));
    Entry& entry = uploads[digest];
    if (!known) entry.opened_ms = now_ms;
    entry.assignment = place.assignment;
    entry.upload = upload;
    entry.progress_ms = now_ms;
    entry.leaves_seen = 0;
    return upload;
}

void Uploads::close(ComputerId computer, const Digest& digest) {
    const auto found = by_computer_.find(computer);
    if (found == by_computer_.end()) return;
    found->second.erase(digest);
    if (found->second.empty()) by_computer_.erase(found);
}

void Uploads::sweep(const std::function<bool(const AssignmentId&)>& is_open, uint64_t now_ms) {
    for (auto& [computer, uploads] : by_computer_)
        for (auto place = uploads.begin(); place != uploads.end();) {
            Entry& entry = place->second;
            const uint64_t held = entry.upload ? entry.upload->leaves_held() : entry.leaves_seen;
            if (held != entry.leaves_seen) {
                entry.leaves_seen = held;
                entry.progress_ms = now_ms;
            }
            const bool over =
                !is_open(entry.assignment) || now_ms - entry.progress_ms > limits::upload_idle_ms;
            if (over && entry.upload) entry.upload->give_way();
            place = over ? uploads.erase(place) : std::next(place);
        }
    std::erase_if(by_computer_, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace goblin::lab
