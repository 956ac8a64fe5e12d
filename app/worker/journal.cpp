// Appends, reads and compacts the journal.
#include "app/worker/journal.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "app/worker/journal_replay.hpp"
#include "core/error.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr size_t head_bytes = 12;
constexpr uint64_t record_limit_bytes = limits::exchange_bytes + (1u << 20);
constexpr uint64_t compact_above_bytes = 1u << 20;
constexpr uint64_t compact_at_ratio = 2;

Bytes head_of(std::span<const uint8_t> payload) {
    Bytes head;
    for (int shift = 0; shift < 32; shift += 8) head.push_back(static_cast<uint8_t>(payload.size() >> shift));
    const Digest digest = sha256(payload);
    head.insert(head.end(), digest.bytes.begin(), digest.bytes.begin() + 8);
    return head;
}

// The file grows up to where it is compacted, and compacting copies what is live.
uint64_t disk_bytes_of(uint64_t size_bytes, uint64_t live_bytes) {
    return std::max({size_bytes, compact_above_bytes, compact_at_ratio * live_bytes}) + live_bytes;
}

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
    JournalReplay replay;
    const uint64_t size = file_->identity().size_bytes;
    size_bytes_ = for_each_record(*file_, size, [&](std::span<const uint8_t> payload, uint64_t offset) {
        note(static_cast<JournalKind>(payload[0]), replay.apply(payload),
             {offset, head_bytes + payload.size()});
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

void Journal::note(JournalKind kind, const AssignmentId& id, Extent extent) {
    if (kind == JournalKind::granted || live_.contains(id)) {
        live_[id].push_back(extent);
        live_bytes_ += extent.size;
    }
    if (kind != JournalKind::closed) return;
    for (const Extent& dead : live_[id]) live_bytes_ -= dead.size;
    live_.erase(id);
}

void Journal::append(JournalKind kind, const AssignmentId& id, const Bytes& message) {
    const std::lock_guard lock(mutex_);
    Bytes payload{static_cast<uint8_t>(kind)};
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

uint64_t Journal::size_bytes() const {
    const std::lock_guard lock(mutex_);
    return size_bytes_;
}

uint64_t Journal::disk_bytes() const {
    const std::lock_guard lock(mutex_);
    return disk_bytes_of(size_bytes_, live_bytes_);
}

uint64_t Journal::growth_bytes(uint64_t record_bytes) const {
    const std::lock_guard lock(mutex_);
    return disk_bytes_of(size_bytes_ + record_bytes, live_bytes_ + record_bytes) -
           disk_bytes_of(size_bytes_, live_bytes_);
}

uint64_t Journal::most_growth_bytes(uint64_t record_bytes) {
    return (compact_at_ratio + 1) * record_bytes;
}

uint64_t Journal::record_bytes(const Grant& grant) {
    return head_bytes + 1 + encode_message(grant).size();
}

void Journal::granted(const Grant& grant) {
    append(JournalKind::granted, grant.assignment, encode_message(grant));
}
void Journal::started(const AssignmentId& id) {
    append(JournalKind::started, id, encode_message(IdMessage{id}));
}
void Journal::halted(const AssignmentId& id) {
    append(JournalKind::halted, id, encode_message(IdMessage{id}));
}
void Journal::spoiled(const AssignmentId& id) {
    append(JournalKind::spoiled, id, encode_message(IdMessage{id}));
}
void Journal::send_asked(const AssignmentId& id) {
    append(JournalKind::send_asked, id, encode_message(IdMessage{id}));
}
void Journal::closed(const AssignmentId& id) {
    append(JournalKind::closed, id, encode_message(IdMessage{id}));
}
void Journal::computed(const AssignmentId& id, const Computed& computed) {
    append(JournalKind::computed, id, encode_message(ComputedMessage{id, computed}));
}
void Journal::ended(const AssignmentId& id, const Ended& ended) {
    append(JournalKind::ended, id, encode_message(EndedMessage{id, ended}));
}

}  // namespace goblin::worker
