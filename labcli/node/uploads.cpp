// Holds uploads in memory, within a budget.
#include "labcli/node/uploads.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/work/leaf_stream.hpp"
#include "core/work/limits.hpp"

namespace goblin::lab {

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

uint64_t Upload::leaves_held() const {
    const std::lock_guard lock(mutex_);
    return leaves_held_;
}

void Upload::write_leaf(uint64_t index, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    assert(index == leaves_held_ && bytes.size() == leaf_length(size_bytes(), index));
    if (!bytes.empty())
        std::memcpy(output_.tensor.bytes().data() + index * leaf_size_bytes, bytes.data(), bytes.size());
    ++leaves_held_;
}

ArrivedOutput Upload::take() {
    const std::lock_guard lock(mutex_);
    assert(leaves_held_ == leaf_count(size_bytes()));
    return std::move(output_);
}

std::shared_ptr<Upload> Uploads::open(ComputerId computer, const Digest& digest,
                                      const ExchangeDesk::UploadPlace& place, uint64_t now_ms) {
    auto& uploads = by_computer_[computer];
    if (const auto found = uploads.find(digest); found != uploads.end()) return found->second.upload;
    UploadBudget::Reservation reservation = UploadBudget::reserve(budget_, place.spec.size_bytes());
    if (!reservation) return nullptr;
    auto upload = std::make_shared<Upload>(place, std::move(reservation));
    uploads.emplace(digest, Entry{upload, now_ms, 0});
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
        for (auto entry = uploads.begin(); entry != uploads.end();) {
            Entry& upload = entry->second;
            const uint64_t held = upload.upload->leaves_held();
            if (held != upload.leaves_seen) {
                upload.leaves_seen = held;
                upload.progress_ms = now_ms;
            }
            const bool over = !is_open(upload.upload->place().assignment) ||
                              now_ms - upload.progress_ms > limits::upload_idle_ms;
            entry = over ? uploads.erase(entry) : std::next(entry);
        }
    std::erase_if(by_computer_, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace goblin::lab
