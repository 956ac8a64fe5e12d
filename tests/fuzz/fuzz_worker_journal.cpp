// Any records as a worker's journal: an error, or open assignments that come out the same when they are
// written and replayed once more. An input is a sequence of records, each after its length in two bytes.
#include <cstdint>
#include <set>

#include "app/worker/journal_replay.hpp"
#include "core/error.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;
using namespace goblin::worker;

namespace {

template <typename M>
void replay(JournalReplay& journal, JournalKind kind, const M& message) {
    Bytes payload = encode_message(message);
    payload.insert(payload.begin(), static_cast<uint8_t>(kind));
    (void)journal.apply(payload);
}

// The records that an entry comes to.
void write(JournalReplay& journal, const JournalEntry& entry) {
    const AssignmentId id = entry.grant.assignment;
    replay(journal, JournalKind::granted, entry.grant);
    if (entry.computed) replay(journal, JournalKind::computed, ComputedMessage{id, *entry.computed});
    for (uint64_t death = 0; death < entry.deaths; ++death)
        replay(journal, JournalKind::started, IdMessage{id});
    if (entry.send_asked) replay(journal, JournalKind::send_asked, IdMessage{id});
    if (entry.ended) replay(journal, JournalKind::ended, EndedMessage{id, *entry.ended});
}

bool same(const JournalEntry& a, const JournalEntry& b) {
    const AssignmentId id = a.grant.assignment;
    const auto computed = [&](const JournalEntry& entry) {
        return entry.computed ? encode_message(ComputedMessage{id, *entry.computed}) : Bytes();
    };
    const auto ended = [&](const JournalEntry& entry) {
        return entry.ended ? encode_message(EndedMessage{id, *entry.ended}) : Bytes();
    };
    return encode_message(a.grant) == encode_message(b.grant) && a.deaths == b.deaths &&
           a.send_asked == b.send_asked && computed(a) == computed(b) && ended(a) == ended(b);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::span<const uint8_t> rest(data, size);
    JournalReplay journal;
    uint64_t records = 0;
    try {
        while (rest.size() > 2) {
            const size_t length = std::min<size_t>(rest[0] | rest[1] << 8, rest.size() - 2);
            if (length > 0) journal.apply(rest.subspan(2, length));
            rest = rest.subspan(2 + length);
            ++records;
        }
    } catch (const Error& error) {
        REQUIRE(error.kind() == ErrorKind::input);
    }
    const std::vector<JournalEntry> open = journal.take();
    JournalReplay again;
    std::set<AssignmentId> ids;
    for (const JournalEntry& entry : open) {
        REQUIRE(ids.insert(entry.grant.assignment).second);
        REQUIRE(entry.deaths <= records);
        write(again, entry);
    }
    const std::vector<JournalEntry> replayed = again.take();
    REQUIRE(replayed.size() == open.size());
    for (size_t i = 0; i < open.size(); ++i) REQUIRE(same(open[i], replayed[i]));
    return 0;
}
