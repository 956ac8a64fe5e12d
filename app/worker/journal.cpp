// Appends, reads and compacts the journal.
#include "app/worker/journal.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/error.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr size_t head_bytes = 12;
constexpr uint64_t record_limit_bytes = limits::exchange_bytes + (1u << 20);
constexpr uint64_t compact_above_bytes = 1u << 20;
constexpr uint64_t compact_at_ratio = 4;

enum Kind : uint8_t {
    granted_kind = 1,
    started_kind,
    halted_kind,
    computed_kind,
    spoiled_kind,
    send_asked_kind,
    ended_kind,
    closed_kind
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

Bytes head_of(std::span<const uint8_t> payload) {
    Bytes head;
    for (int shift = 0; shift < 32; shift += 8) head.push_back(static_cast<uint8_t>(payload.size() >> shift));
    const Digest digest = sha256(payload);
    head.insert(head.end(), digest.bytes.begin(), digest.bytes.begin() + 8);
    return head;
}

// Applies one record to the entries; an entry lives from its grant to its end.
class Replay {
  public:
    // The assignment that the record is about.
    AssignmentId apply(std::span<const uint8_t> payload) {
        const uint8_t kind = payload[0];
        const auto message = payload.subspan(1);
        switch (kind) {
            case granted_kind: {
                auto grant = decode_message<Grant>(message);
                const AssignmentId id = grant.assignment;
                if (!entries_.contains(id)) order_.push_back(id);
                entries_[id].grant = std::move(grant);
                return id;
            }
            case computed_kind: {
                auto m = decode_message<ComputedMessage>(message);
                if (JournalEntry* entry = find(m.id)) {
                    entry->computed = std::move(m.computed);
                    entry->deaths = 0;
                }
                return m.id;
            }
            case ended_kind: {
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

    std::vector<JournalEntry> take() {
        std::vector<JournalEntry> open;
        for (const AssignmentId& id : order_)
            if (const auto found = entries_.find(id); found != entries_.end()) {
                open.push_back(std::move(found->second));
                entries_.erase(found);
            }
        return open;
    }

  private:
    JournalEntry* find(const AssignmentId& id) {
        const auto found = entries_.find(id);
        return found == entries_.end() ? nullptr : &found->second;
    }

    void apply_mark(uint8_t kind, const AssignmentId& id, JournalEntry& entry) {
        switch (kind) {
            case started_kind:
                ++entry.deaths;
                return;
            case halted_kind:
                entry.deaths -= entry.deaths > 0 ? 1 : 0;
                return;
            case spoiled_kind:
                entry.computed.reset();
                return;
            case send_asked_kind:
                entry.send_asked = true;
                return;
            case closed_kind:
                entries_.erase(id);
                return;
            default:
                throw Error(ErrorKind::input, "journal: expected a known kind of record, found {}", kind);
        }
    }

    std::map<AssignmentId, JournalEntry> entries_;
    std::vector<AssignmentId> order_;
};

// Calls `take` for each whole record; gives where the first one that isn't begins.
template <typename Take>
uint64_t for_each_record(const File& file, uint64_t size, Take take) {
    uint64_t offset = 0;
    Bytes payload;
    while (offset + head_bytes < size) {
        std::array<uint8_t, head_bytes> head{};
        file.read_at(offset, std::as_writable_bytes(std::span(head)));
        uint32_t length = 0;
        for (size_t i = 0; i < 4; ++i) length |= uint32_t{head[i]} << (8 * i);
        if (length == 0 || length > record_limit_bytes || offset + head_bytes + length > size) break;
        payload.resize(length);
        file.read_at(offset + head_bytes, std::as_writable_bytes(std::span(payload)));
        const Bytes expected = head_of(payload);
        if (!std::equal(expected.begin(), expected.end(), head.begin())) break;
        try {
            take(std::span<const uint8_t>(payload), offset);
        } catch (const Error&) {
            break;  // written by another version: what follows can't be trusted either
        }
        offset += head_bytes + length;
    }
    return offset;
}

}  // namespace

Journal::Journal(fs::path path, std::vector<JournalEntry>& open) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove(path_.string() + ".new", ignored);
    file_.emplace(identity_of(path_) ? File::open_to_write(path_) : File::create(path_));
    fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write, ignored);
    read_all(open);
}

void Journal::read_all(std::vector<JournalEntry>& open) {
    Replay replay;
    const uint64_t size = file_->identity().size_bytes;
    size_bytes_ = for_each_record(*file_, size, [&](std::span<const uint8_t> payload, uint64_t offset) {
        note(payload[0], replay.apply(payload), {offset, head_bytes + payload.size()});
    });
    if (size_bytes_ < size) cut_at(size_bytes_);
    open = replay.take();
    compact_when_worth_it();
}

// Drops what was torn, or written by another version: new records must follow whole ones.
void Journal::cut_at(uint64_t size_bytes) {
    std::error_code trouble;
    fs::resize_file(path_, size_bytes, trouble);
    if (trouble)
        throw Error(ErrorKind::io,
                    "expected to cut {} after its last whole record, at {} bytes, the system refused: {}; "
                    "check the disk and the file's permissions",
                    path_.string(), size_bytes, trouble.message());
}

void Journal::note(uint8_t kind, const AssignmentId& id, Extent extent) {
    if (kind == granted_kind || live_.contains(id)) {
        live_[id].push_back(extent);
        live_bytes_ += extent.size;
    }
    if (kind != closed_kind) return;
    for (const Extent& dead : live_[id]) live_bytes_ -= dead.size;
    live_.erase(id);
}

void Journal::append(uint8_t kind, const AssignmentId& id, const Bytes& message) {
    const std::lock_guard lock(mutex_);
    Bytes payload{kind};
    payload.insert(payload.end(), message.begin(), message.end());
    assert(payload.size() <= record_limit_bytes);
    Bytes record = head_of(payload);
    record.insert(record.end(), payload.begin(), payload.end());
    try {
        file_->write_at(size_bytes_, std::as_bytes(std::span(record)));
    } catch (const Error&) {
        std::error_code ignored;
        fs::resize_file(path_, size_bytes_, ignored);  // no torn record in the middle
        throw;
    }
    note(kind, id, {size_bytes_, record.size()});
    size_bytes_ += record.size();
    compact_when_worth_it();
}

void Journal::compact_when_worth_it() {
    if (size_bytes_ < compact_above_bytes || size_bytes_ < compact_at_ratio * live_bytes_) return;
    const fs::path fresh_path = path_.string() + ".new";
    std::map<AssignmentId, std::vector<Extent>> live = live_;
    std::vector<Extent*> extents;
    for (auto& [id, records] : live)
        for (Extent& extent : records) extents.push_back(&extent);
    std::sort(extents.begin(), extents.end(),
              [](const Extent* a, const Extent* b) { return a->offset < b->offset; });
    std::error_code trouble;
    try {
        fs::remove(fresh_path, trouble);
        File fresh = File::create(fresh_path);
        uint64_t size = 0;
        Bytes record;
        for (Extent* extent : extents) {
            record.resize(extent->size);
            file_->read_at(extent->offset, std::as_writable_bytes(std::span(record)));
            fresh.write_at(size, std::as_bytes(std::span(record)));
            extent->offset = size;
            size += extent->size;
        }
        fresh.sync();
        fs::rename(fresh_path, path_);
        file_.emplace(std::move(fresh));
        live_ = std::move(live);
        size_bytes_ = live_bytes_ = size;
    } catch (const std::exception&) {
        fs::remove(fresh_path, trouble);  // the old journal serves as well; it is only longer
    }
}

void Journal::granted(const Grant& grant) {
    append(granted_kind, grant.assignment, encode_message(grant));
}
void Journal::started(const AssignmentId& id) {
    append(started_kind, id, encode_message(IdMessage{id}));
}
void Journal::halted(const AssignmentId& id) {
    append(halted_kind, id, encode_message(IdMessage{id}));
}
void Journal::spoiled(const AssignmentId& id) {
    append(spoiled_kind, id, encode_message(IdMessage{id}));
}
void Journal::send_asked(const AssignmentId& id) {
    append(send_asked_kind, id, encode_message(IdMessage{id}));
}
void Journal::closed(const AssignmentId& id) {
    append(closed_kind, id, encode_message(IdMessage{id}));
}
void Journal::computed(const AssignmentId& id, const Computed& computed) {
    append(computed_kind, id, encode_message(ComputedMessage{id, computed}));
}
void Journal::ended(const AssignmentId& id, const Ended& ended) {
    append(ended_kind, id, encode_message(EndedMessage{id, ended}));
}

}  // namespace goblin::worker
