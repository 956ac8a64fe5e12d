// Uploads: outputs on their way in, in memory while there is room for them, so that an accepted tile is
// written once, straight into the job's output.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "labcli/schedule/exchange_desk.hpp"
#include "labcli/service/contributor_door.hpp"

namespace goblin::lab {

// The memory that uploads, and the results they become, may take together.
class UploadBudget {
  public:
    explicit UploadBudget(uint64_t size_bytes) : free_bytes_(size_bytes) {}

    // Held as long as the numbers are; gives the memory back when the last holder lets go. Null when there is
    // too little.
    using Reservation = std::shared_ptr<const void>;
    static Reservation reserve(const std::shared_ptr<UploadBudget>& budget, uint64_t size_bytes);

  private:
    std::mutex mutex_;
    uint64_t free_bytes_;
};

class Upload final : public BlobSink {
  public:
    Upload(ExchangeDesk::UploadPlace place, UploadBudget::Reservation reservation)
        : place_(std::move(place)), output_{Tensor(place_.spec), std::move(reservation)} {}

    uint64_t size_bytes() const override { return place_.spec.size_bytes(); }
    uint64_t leaves_held() const override;
    void write_leaf(uint64_t index, std::span<const std::byte> bytes) override;

    const ExchangeDesk::UploadPlace& place() const { return place_; }
    // All leaves are there; the memory goes to the caller.
    ArrivedOutput take();

  private:
    ExchangeDesk::UploadPlace place_;
    mutable std::mutex mutex_;
    ArrivedOutput output_;
    uint64_t leaves_held_ = 0;
};

// Uploads under way by computer and digest. On the lab's thread only.
class Uploads {
  public:
    explicit Uploads(uint64_t budget_bytes) : budget_(std::make_shared<UploadBudget>(budget_bytes)) {}

    // The one begun before, or a new one; null while there is no memory for it.
    std::shared_ptr<Upload> open(ComputerId computer, const Digest& digest,
                                 const ExchangeDesk::UploadPlace& place, uint64_t now_ms);
    void close(ComputerId computer, const Digest& digest);
    // Forgets those whose assignment is over or that nobody has gone on with.
    void sweep(const std::function<bool(const AssignmentId&)>& is_open, uint64_t now_ms);

  private:
    struct Entry {
        std::shared_ptr<Upload> upload;
        uint64_t progress_ms = 0;
        uint64_t leaves_seen = 0;
    };
    std::shared_ptr<UploadBudget> budget_;
    std::unordered_map<ComputerId, std::unordered_map<Digest, Entry, DigestHash>> by_computer_;
};

}  // namespace goblin::lab
