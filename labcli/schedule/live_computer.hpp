// LiveComputer: what the scheduler knows about a computer beyond its record, for as long as the lab node
// runs.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "labcli/records/answer.hpp"
#include "labcli/records/peer.hpp"
#include "labcli/records/records.hpp"

namespace goblin::lab {

// An exchange held back until there is something to say.
struct WaitingExchange {
    uint64_t answer_by_ms = 0;
    Done<ExchangeReply> done;
};

struct LiveComputer {
    Computer record;

    Peer peer;
    std::string network;  // see network_of()
    FixedBytes<16> session{};
    std::vector<FixedBytes<16>> earlier_sessions;
    uint64_t last_seen_ms = 0;  // 0: not since the lab node started
    std::string state;
    std::vector<DeviceOffer> devices;
    uint64_t wanted_tasks = 0;
    uint64_t wanted_work_ms = 0;
    std::unordered_set<Digest, DigestHash> blobs;

    uint64_t quota = 1;  // tasks it may have uncommitted
    uint64_t ends_in_a_row = 0;
    uint64_t no_tasks_before_ms = 0;
    uint64_t last_commit_ms = 0;

    std::unordered_set<AssignmentId, AssignmentIdHash> open;
    uint64_t uncommitted = 0;  // of those, issued and not yet committed
    uint64_t uncommitted_flops = 0;
    // News that the worker hasn't been seen to know: dropped once it no longer lists the assignment.
    std::unordered_map<AssignmentId, Decision, AssignmentIdHash> decided;
    std::unordered_map<AssignmentId, std::string, AssignmentIdHash> cancelled;
    bool has_news = false;
    std::optional<WaitingExchange> waiting;

    uint64_t memory_bytes() const;
    bool takes_floats() const;
    // Operations a second: measured, else claimed (bounded), else a guess.
    uint64_t speed_flops() const;
    // Folds in what was committed in one exchange.
    void measure(uint64_t flops, uint64_t since_ms, uint64_t now_ms);

    void succeed();
    // Halves the quota and makes it wait.
    void err(uint64_t now_ms);
    // Makes it wait before it gets more tasks, longer each time in a row. While it waits already, nothing
    // changes: what ends at one time counts once.
    void hold_off(uint64_t now_ms);
    bool waits(uint64_t now_ms) const { return now_ms < no_tasks_before_ms; }

    // Whether it has spoken lately, and not to say that it stops.
    bool is_connected(uint64_t now_ms) const;
    // What `node list` says it does.
    std::string state_text(uint64_t now_ms) const;
};

// Replicas of a task never share a network: the /24 of an IPv4 address, the /48 of an IPv6 address; loopback:
// each volunteer its own.
std::string network_of(const Peer& peer);

}  // namespace goblin::lab
