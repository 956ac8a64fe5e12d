// Uploads: outputs on their way in, in memory while there is room for them, so that an accepted tile is
// written once, straight into the job's output.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

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
    uint64_t free_bytes() const;

  private:
    mutable std::mutex mutex_;
    uint64_t free_bytes_;
};

class Upload final : public BlobSink {
  public:
    Upload(ExchangeDesk::UploadPlace place, UploadBudget::Reservation reservation)
        : place_(std::move(place)), output_(ArrivedOutput{Tensor(place_.spec), std::move(reservation)}) {}

    uint64_t size_bytes() const override { return place_.spec.size_bytes(); }
    uint64_t leaves_held() const override;
    bool wanted() const override;
    void write_leaf(uint64_t index, std::span<const std::byte> bytes) override;

    const ExchangeDesk::UploadPlace& place() const { return place_; }
    // All leaves are there: the memory goes to the caller. Nothing when another request that completed it was
    // faster, or when it had to give way.
    std::optional<ArrivedOutput> take();
    // Gives its memory back at once; a request that still writes to it is told so.
    void give_way();

  private:
    ExchangeDesk::UploadPlace place_;
    mutable std::mutex mutex_;
    std::optional<ArrivedOutput> output_;  // until it is taken or gives way
    uint64_t leaves_held_ = 0;
};

// Uploads under way by computer and digest. On the lab's thread only.
//
// What has arrived is kept however slow an upload is, and over a break of the connection, while its memory
// isn't needed. When it is, uploads give way that are slower than durations of assignments allow for: a
// contributor that dawdles takes no memory from others for long.
class Uploads {
  public:
    // Has numbers that have arrived, and that nobody can use yet, give so much back, or nothing.
    using MakeRoom = std::function<void(uint64_t size_bytes)>;

    Uploads(uint64_t budget_bytes, MakeRoom make_room)
        : budget_(std::make_shared<UploadBudget>(budget_bytes)), make_more_room_(std::move(make_room)) {}

    // The one begun before, or a new one; null while there is no memory for it.
    std::shared_ptr<Upload> open(ComputerId computer, const Digest& digest,
                                 const ExchangeDesk::UploadPlace& place, uint64_t now_ms);
    void close(ComputerId computer, const Digest& digest);
    // Ends those whose assignment is over or that nobody has gone on with.
    void sweep(const std::function<bool(const AssignmentId&)>& is_open, uint64_t now_ms);

  private:
    struct Entry {
        AssignmentId assignment{};
        std::shared_ptr<Upload> upload;  // null: it gave way
        uint64_t opened_ms = 0;          // the first time: who gives way and comes again gains no time
        uint64_t progress_ms = 0;
        uint64_t leaves_seen = 0;
    };
    static bool is_late(const Entry& entry, uint64_t now_ms);
    // Has late uploads give way, the slowest first, and where that isn't enough, numbers that wait,
    // if they make enough room together.
    void make_room(uint64_t size_bytes, uint64_t now_ms);

    std::shared_ptr<UploadBudget> budget_;
    MakeRoom make_more_room_;
    std::unordered_map<ComputerId, std::unordered_map<Digest, Entry, DigestHash>> by_computer_;
};

}  // namespace goblin::lab
