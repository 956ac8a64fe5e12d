// Journal replay: what a journal's records come to. Knows no file: it gets one record's payload after
// another.
//
//   payload = u8 kind ‖ CBOR of the kind's message
#pragma once

#include <map>
#include <span>
#include <vector>

#include "app/worker/journal.hpp"

namespace goblin::worker {

enum class JournalKind : uint8_t {
    granted = 1,
    started,
    halted,
    computed,
    spoiled,
    send_asked,
    ended,
    closed,
};

struct IdMessage {
    AssignmentId id{};
};
template <class V>
void describe(V& v, IdMessage& m) {
    v.field("id", m.id);
}

struct ComputedMessage {
    AssignmentId id{};
    Computed computed;
};
template <class V>
void describe(V& v, ComputedMessage& m) {
    v.field("id", m.id);
    v.field("digests", m.computed.digests, limits::task_outputs);
    v.field("compute_us", m.computed.compute_us);
    v.field("in_files", m.computed.in_files);
    v.field("outputs", m.computed.outputs, limits::task_outputs);
}

struct EndedMessage {
    AssignmentId id{};
    Ended ended;
};
template <class V>
void describe(V& v, EndedMessage& m) {
    v.field("id", m.id);
    v.field("kind", m.ended.kind);
    v.field("reason", m.ended.reason, limits::text_bytes);
}

// Applies records to entries; an entry lives from its grant to its end.
class JournalReplay {
  public:
    // Of one byte at least. Gives the assignment that the record is about. Throws ErrorKind::input for what
    // no journal of this version holds.
    AssignmentId apply(std::span<const uint8_t> payload);
    // What is open, oldest first.
    std::vector<JournalEntry> take();

  private:
    JournalEntry* find(const AssignmentId& id);
    void apply_mark(JournalKind kind, const AssignmentId& id, JournalEntry& entry);

    std::map<AssignmentId, JournalEntry> entries_;
    std::vector<AssignmentId> order_;
};

}  // namespace goblin::worker
