// The journal of one lab's open assignments: labs/KEY/journal, appended to before anything is done about a
// change.
//
//   record = u32 length, little-endian ‖ first 8 bytes of SHA-256(payload) ‖ payload
//   payload = u8 kind ‖ CBOR of the kind's message
//
// A kill at any moment leaves whole records and at most one torn one at the end, which is cut off when the
// file is read again. A power cut may cost the latest records: then the lab hands the assignment out again or
// is told the same once more, since results are the same bits. So nothing waits for the disk here.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/tensor/file.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

// The outputs of a computed task. Small ones are here, large ones in files beside the journal.
struct Computed {
    std::vector<Digest> digests;  // under the assignment's key, one per output
    uint64_t compute_us = 0;
    bool in_files = false;
    std::vector<FrameMessage> outputs;  // one per output, or none when they are in files
};

// An assignment that the lab shall be told about as not computed.
struct Ended {
    ResultKind kind = ResultKind::failed;  // or handed_back
    std::string reason;
};

// What the journal knows about an assignment that isn't closed.
struct JournalEntry {
    Grant grant;
    uint64_t deaths = 0;  // computations that began and neither ended nor were stopped on purpose
    std::optional<Computed> computed;
    std::optional<Ended> ended;
    bool send_asked = false;
};

enum class JournalKind : uint8_t;  // see journal_replay.hpp

// Functions may be called from any thread. They throw ErrorKind::io when the record can't be written; the
// journal is then as if they had not been called.
class Journal {
  public:
    // Opens or makes the file and gives what is open, oldest first. Throws ErrorKind::io.
    Journal(std::filesystem::path path, std::vector<JournalEntry>& open);

    void granted(const Grant& grant);
    void started(
        const AssignmentId& id);  // computing begins; without a word after it, the worker died computing
    void halted(const AssignmentId& id);  // computing ended, or is stopped on purpose: doesn't count
    void computed(const AssignmentId& id, const Computed& computed);
    void spoiled(const AssignmentId& id);  // its outputs were lost: to be computed again
    void send_asked(const AssignmentId& id);
    void ended(const AssignmentId& id, const Ended& ended);
    void closed(const AssignmentId& id);

    // What it takes of the disk at most until the next record, the copy that compacting makes included…
    uint64_t disk_bytes() const;
    // … and how much that grows by with a record of so many bytes of an open assignment.
    uint64_t growth_bytes(uint64_t record_bytes) const;
    static uint64_t most_growth_bytes(uint64_t record_bytes);
    uint64_t size_bytes() const;
    // Of a grant as a record.
    static uint64_t record_bytes(const Grant& grant);

  private:
    struct Extent {
        uint64_t offset;
        uint64_t size;
    };
    void append(JournalKind kind, const AssignmentId& id, const Bytes& message);
    void note(JournalKind kind, const AssignmentId& id, Extent extent);
    void read_all(std::vector<JournalEntry>& open);
    void cut_at(uint64_t size_bytes);
    void compact_when_worth_it();

    std::filesystem::path path_;
    mutable std::mutex mutex_;
    std::optional<File> file_;
    uint64_t size_bytes_ = 0;
    uint64_t live_bytes_ = 0;
    std::map<AssignmentId, std::vector<Extent>> live_;  // records of open assignments
};

}  // namespace goblin::worker
