// One lab's work on this computer: what becomes of each assignment from its grant to the lab's decision.
// Every change goes to the journal first. Knows no network and no clock: it says what is to be fetched,
// computed and uploaded, and is told what came of it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "app/worker/assignment_book.hpp"
#include "app/worker/blob_transfer.hpp"
#include "app/worker/compute_job.hpp"
#include "app/worker/log.hpp"

namespace goblin::worker {

// An output file that the lab asked for.
struct UploadDue {
    AssignmentId assignment{};
    Digest digest;
    TensorSpec spec;
    std::filesystem::path file;
    std::optional<SecretKey> check_by;
};

// What became of the tasks since the start.
struct Tally {
    uint64_t computed = 0;
    uint64_t accepted = 0;
    uint64_t disagreed = 0;
    uint64_t failed = 0;
    uint64_t handed_back = 0;
    friend bool operator==(const Tally&, const Tally&) = default;
};

// One thread uses it, but for what compute orders call.
class LabWork {
  public:
    // Why no device of this computer can run the graph; empty when one can.
    using WhyNot = std::function<std::optional<std::string>(const Graph&)>;

    // Opens the folder's journal and takes up what is in it. Throws ErrorKind::io.
    LabWork(std::filesystem::path lab_folder, const Digest& lab_key, BlobCache& cache, WhyNot why_not,
            Log& log);

    AssignmentBook& book() { return book_; }
    const AssignmentBook& book() const { return book_; }
    const Tally& tally() const { return tally_; }

    // From the lab.
    // Takes what fits `memory_bytes` of all that is in hand, and the disk; hands back the rest.
    void granted(std::vector<Grant> grants, uint64_t memory_bytes);
    void acknowledged(const std::vector<Receipt>& receipts, const std::vector<Result>& told);
    // These two give the ones that are being computed, to be stopped.
    std::vector<AssignmentId> decided(const std::vector<Decision>& decisions);
    std::vector<AssignmentId> cancelled(const std::vector<Cancel>& cancels);
    void send_asked(const std::vector<AssignmentId>& ids);

    // Moves assignments on, in order, as far as the cache has room for their inputs.
    void pin_waiting();

    // Fetching. Gives blobs that are to be fetched and weren't given before.
    std::vector<BlobNeed> fetches_due();
    void fetch_ended(const Digest& digest, const TransferOutcome& outcome);
    // Blobs under way that no assignment waits for any more.
    std::vector<Digest> idle_fetches() const;

    // Computing.
    bool has_ready() const { return book_.count(Stage::ready) > 0; }
    // Takes the oldest ready assignment that `fits`.
    std::optional<ComputeOrder> next_order(const std::function<bool(const Graph&)>& fits);
    void compute_ended(const AssignmentId& id, ComputeOutcome outcome);

    // Uploading. Gives what is to be uploaded and wasn't given before.
    std::vector<UploadDue> uploads_due();
    void upload_ended(const UploadDue& upload, const TransferOutcome& outcome);
    bool uploading() const { return !uploads_.empty(); }

    // The owner wants the machine, or the worker stops: hands back what isn't being computed.
    void hand_back_unstarted(const std::string& reason);
    // The same for computed assignments too: their outputs are dropped.
    void hand_back_computed(const std::string& reason);
    // The program ends right now: what is being computed doesn't count as tried.
    void abandon_computing();
    // An assignment that is stopped while computing is handed back with this reason.
    void set_stop_reason(std::string reason) { stop_reason_ = std::move(reason); }

    // The disk refused something since the last call: why.
    std::optional<std::string> take_disk_trouble() { return std::exchange(disk_trouble_, std::nullopt); }
    // What open assignments take of memory at most.
    uint64_t bytes_in_memory() const;

  private:
    void restore(JournalEntry entry);
    void drop_stray_outputs();
    void accept(Grant grant, uint64_t free_memory_bytes);
    std::optional<Ended> objection_to(const Assignment& assignment) const;
    std::optional<std::string> lack_of_room(const Grant& grant, const Assignment& assignment,
                                            uint64_t free_memory_bytes);
    void refuse(Grant grant, const Ended& ended);
    void hand_back_unkept(const Grant& grant, const std::string& reason);
    bool record(const std::function<void()>& write);
    void account_for_journal();
    void release_disk(Assignment& assignment);
    void end(Assignment& assignment, ResultKind kind, const std::string& reason);
    void close(const AssignmentId& id);
    void unpin(Assignment& assignment);
    void drop_outputs(Assignment& assignment);
    bool take_outputs(Assignment& assignment, Computed computed);
    void no_room_for(const Assignment& assignment);
    void hand_back_all_that_miss(const Digest& digest, const std::string& reason);
    void disk_failed(Assignment& assignment, const std::string& reason);
    std::string shown(const AssignmentId& id) const;

    std::filesystem::path folder_;
    Digest lab_key_;
    BlobCache& cache_;
    WhyNot why_not_;
    Log& log_;
    AssignmentBook book_;
    std::optional<Journal> journal_;
    uint64_t journal_takes_bytes_ = 0;          // of the disk, as the cache knows
    std::map<Digest, TensorSpec> fetches_;      // under way; each pins its blob
    std::map<Digest, uint64_t> wrong_fetches_;  // how often the lab sent other bytes
    std::set<std::pair<AssignmentId, Digest>> uploads_;
    std::set<AssignmentId> leaving_;  // gone from the book while a device still has them
    Tally tally_;
    std::string stop_reason_;
    std::optional<std::string> disk_trouble_;
};

}  // namespace goblin::worker
