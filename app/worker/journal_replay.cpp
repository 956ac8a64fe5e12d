// Applies a journal's records one by one.
#include "app/worker/journal_replay.hpp"

#include "core/error.hpp"

namespace goblin::worker {

AssignmentId JournalReplay::apply(std::span<const uint8_t> payload) {
    const auto kind = static_cast<JournalKind>(payload[0]);
    const auto message = payload.subspan(1);
    switch (kind) {
        case JournalKind::granted: {
            auto grant = decode_message<Grant>(message);
            const AssignmentId id = grant.assignment;
            if (!entries_.contains(id)) order_.push_back(id);
            entries_[id].grant = std::move(grant);
            return id;
        }
        case JournalKind::computed: {
            auto m = decode_message<ComputedMessage>(message);
            if (JournalEntry* entry = find(m.id)) {
                entry->computed = std::move(m.computed);
                entry->deaths = 0;
            }
            return m.id;
        }
        case JournalKind::ended: {
            auto m = decode_message<EndedMessage>(message);
            if (JournalEntry* entry = find(m.id)) entry->ended = std::move(m.ended);
            return m.id;
        }
        default: {
            const AssignmentId id = decode_message<IdMessage>(message).id;
            if (JournalEntry* entry = find(id)) apply_mark(kind, id, *entry);
            return id;
        }
    }
}

std::vector<JournalEntry> JournalReplay::take() {
    std::vector<JournalEntry> open;
    for (const AssignmentId& id : order_)
        if (const auto found = entries_.find(id); found != entries_.end()) {
            open.push_back(std::move(found->second));
            entries_.erase(found);
        }
    return open;
}

JournalEntry* JournalReplay::find(const AssignmentId& id) {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
}

void JournalReplay::apply_mark(JournalKind kind, const AssignmentId& id, JournalEntry& entry) {
    switch (kind) {
        case JournalKind::started:
            ++entry.deaths;
            return;
        case JournalKind::halted:
            entry.deaths -= entry.deaths > 0 ? 1 : 0;
            return;
        case JournalKind::spoiled:
            entry.computed.reset();
            return;
        case JournalKind::send_asked:
            entry.send_asked = true;
            return;
        case JournalKind::closed:
            entries_.erase(id);
            return;
        default:
            throw Error(ErrorKind::input, "journal: expected a known kind of record, found {}",
                        static_cast<unsigned>(kind));
    }
}

}  // namespace goblin::worker
