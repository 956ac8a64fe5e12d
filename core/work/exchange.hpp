// What lab node and contributors say to each other: every message of protocol version 1.
//
//   GET  /v1/lab               → LabInfo
//   POST /v1/enrol             EnrolRequest → EnrolReply
//   POST /v1/exchange          ExchangeRequest → ExchangeReply
//   GET  /v1/blobs/DIGEST?leaf=N   → leaf stream from leaf N (see leaf_stream.hpp)
//   HEAD /v1/blobs/DIGEST      → how many leaves of an upload have arrived, in the header Goblin-Leaves
//   PUT  /v1/blobs/DIGEST?leaf=N   leaf stream from leaf N → empty
//
// All but the first two carry `Authorization: Goblin CREDENTIAL` (64 hexadecimal digits). A refusal is an
// ErrorReply.
#pragma once

#include <string>
#include <vector>

#include "core/arithmetic/contract.hpp"
#include "core/work/message_codec.hpp"
#include "core/work/task.hpp"

namespace goblin {

inline constexpr uint64_t protocol_version = 1;

using AssignmentId = FixedBytes<16>;
using SecretKey = FixedBytes<32>;
using Credential = FixedBytes<32>;

// Both sides name their versions first; only equal ones talk on.
struct Versions {
    uint64_t protocol = protocol_version;
    uint64_t contract = contract_version;
};
template <class V>
void describe(V& v, Versions& m) {
    v.field("protocol", m.protocol);
    v.field("contract", m.contract);
}
// Empty when the peer's versions fit ours; else which side must be updated, seen from us: "lab node" or
// "contributor".
std::string version_mismatch(const Versions& peer, std::string_view peer_role, std::string_view our_role);

// The versions at the head of a message, readable whatever else a later version adds. Throws
// ErrorKind::input.
Versions leading_versions(std::span<const uint8_t> message);

struct LabInfo {
    Versions versions;
    std::string name;
    std::string computes;  // what the lab says it computes
    std::string contact;   // whom to ask
    FixedBytes<32> key;    // SHA-256 of the lab's public key (SubjectPublicKeyInfo)
    Bytes nonce;           // to be signed by an enrolment within ten minutes
};
template <class V>
void describe(V& v, LabInfo& m) {
    v.field("versions", m.versions);
    v.field("name", m.name, limits::text_bytes);
    v.field("computes", m.computes, limits::text_bytes);
    v.field("contact", m.contact, limits::text_bytes);
    v.field("key", m.key);
    v.field("nonce", m.nonce, limits::text_bytes);
}

struct EnrolRequest {
    Versions versions;
    Bytes token;
    FixedBytes<32> volunteer_key;  // Ed25519
    Bytes nonce;
    FixedBytes<64> signature;  // over enrolment_statement()
    FixedBytes<16> computer;   // computer_mark(): one for each of a volunteer's directories and lab
    std::string computer_name;
};
template <class V>
void describe(V& v, EnrolRequest& m) {
    v.field("versions", m.versions);
    v.field("token", m.token, limits::name_characters);
    v.field("volunteer_key", m.volunteer_key);
    v.field("nonce", m.nonce, limits::text_bytes);
    v.field("signature", m.signature);
    v.field("computer", m.computer);
    v.field("computer_name", m.computer_name, 4 * limits::name_characters);
}

struct EnrolReply {
    Credential credential{};
    bool approved = false;  // false: a person at the lab must approve first
};
template <class V>
void describe(V& v, EnrolReply& m) {
    v.field("credential", m.credential);
    v.field("approved", m.approved);
}

struct ErrorReply {
    std::string
        code;  // for programs: "version", "credential", "token", "rate", "copied", "banned", "pending", …
    std::string message;
};
template <class V>
void describe(V& v, ErrorReply& m) {
    v.field("code", m.code, limits::name_characters);
    v.field("message", m.message, limits::text_bytes);
}

// What a contributor tells about an assignment.
enum class ResultKind : uint8_t {
    committed = 0,    // digests of the outputs under the assignment's key
    data = 1,         // small outputs themselves, after the lab asked to send them
    failed = 2,       // the task could not be computed, with the reason
    handed_back = 3,  // not tried: the owner wants the machine, or the worker stops
    last = handed_back,
};

struct Result {
    AssignmentId assignment{};
    ResultKind kind = ResultKind::committed;
    std::vector<Digest> digests;        // committed: one per output
    std::vector<FrameMessage> outputs;  // data: one per output
    uint64_t compute_us = 0;            // committed: time the engine took
    std::string reason;                 // failed, handed_back
};
template <class V>
void describe(V& v, Result& m) {
    v.field("assignment", m.assignment);
    v.field("kind", m.kind);
    v.field("digests", m.digests, limits::task_outputs);
    v.field("outputs", m.outputs, limits::task_outputs);
    v.field("compute_us", m.compute_us);
    v.field("reason", m.reason, limits::text_bytes);
}

struct DeviceOffer {
    std::string kind;  // "cpu", "opencl"
    std::string name;
    uint64_t speed_flops = 0;   // operations a second, by the worker's own measure: a first guess, no more
    bool takes_floats = true;   // false where there is no fma
    uint64_t memory_bytes = 0;  // a task may need at most this much, inputs and outputs included
};
template <class V>
void describe(V& v, DeviceOffer& m) {
    v.field("kind", m.kind, limits::name_characters);
    v.field("name", m.name, limits::text_bytes);
    v.field("speed_flops", m.speed_flops);
    v.field("takes_floats", m.takes_floats);
    v.field("memory_bytes", m.memory_bytes);
}

struct Want {
    std::vector<DeviceOffer> devices;
    uint64_t tasks = 0;               // how many more tasks at most; 0: none now
    uint64_t work_ms = 0;             // how much more work, by this computer's speed
    std::vector<Digest> blobs_added;  // changes to the set of blobs held since the last acknowledged exchange
    std::vector<Digest> blobs_removed;
};
template <class V>
void describe(V& v, Want& m) {
    v.field("devices", m.devices, limits::devices);
    v.field("tasks", m.tasks);
    v.field("work_ms", m.work_ms);
    v.field("blobs_added", m.blobs_added, limits::held_blobs);
    v.field("blobs_removed", m.blobs_removed, limits::held_blobs);
}

struct ExchangeRequest {
    Versions versions;
    FixedBytes<16> session{};  // drawn at each start of the worker
    uint64_t sequence = 0;     // counts exchanges of a session, for the worker's own use
    std::vector<Result> results;
    Want want;
    std::vector<AssignmentId> holding;  // all open assignments the worker knows
    std::string state;                  // "computing", "paused", "stopping", …: shown by `node list`
    uint64_t wait_ms = 0;               // how long the lab may wait for something to say
};
template <class V>
void describe(V& v, ExchangeRequest& m) {
    v.field("versions", m.versions);
    v.field("session", m.session);
    v.field("sequence", m.sequence);
    v.field("results", m.results, limits::exchange_results);
    v.field("want", m.want);
    v.field("holding", m.holding, limits::open_assignments);
    v.field("state", m.state, limits::name_characters);
    v.field("wait_ms", m.wait_ms);
}

enum class ReceiptKind : uint8_t {
    taken = 0,     // commitments are on disk; numbers stay with the worker until decided
    repeated = 1,  // it had been taken before; nothing is counted twice
    refused = 2,   // for the reason given; the worker forgets the assignment
    last = refused,
};

struct Receipt {
    AssignmentId assignment{};
    ReceiptKind kind = ReceiptKind::taken;
    std::string reason;
};
template <class V>
void describe(V& v, Receipt& m) {
    v.field("assignment", m.assignment);
    v.field("kind", m.kind);
    v.field("reason", m.reason, limits::text_bytes);
}

struct Grant {
    AssignmentId assignment{};
    SecretKey key{};
    uint64_t duration_ms = 0;  // after this the lab may give the task to another
    TaskMessage task;
};
template <class V>
void describe(V& v, Grant& m) {
    v.field("assignment", m.assignment);
    v.field("key", m.key);
    v.field("duration_ms", m.duration_ms);
    v.field("task", m.task);
}

struct Cancel {
    AssignmentId assignment{};
    std::string reason;
};
template <class V>
void describe(V& v, Cancel& m) {
    v.field("assignment", m.assignment);
    v.field("reason", m.reason, limits::text_bytes);
}

// The end of an assignment: the worker drops its outputs.
struct Decision {
    AssignmentId assignment{};
    bool agreed = false;
    uint64_t credit_flops = 0;  // work credited
    std::string reason;
};
template <class V>
void describe(V& v, Decision& m) {
    v.field("assignment", m.assignment);
    v.field("agreed", m.agreed);
    v.field("credit_flops", m.credit_flops);
    v.field("reason", m.reason, limits::text_bytes);
}

struct ExchangeReply {
    Versions versions;
    std::vector<Receipt> acknowledged;
    std::vector<Grant> tasks;
    std::vector<Cancel> cancel;
    std::vector<AssignmentId> send;  // upload the outputs: inline in the next exchange, or by PUT when larger
    std::vector<Decision> decided;
    uint64_t wait_ms = 0;  // ask again after this long
    std::string notice;    // for the owner: why there is no work, or what to update
};
template <class V>
void describe(V& v, ExchangeReply& m) {
    v.field("versions", m.versions);
    v.field("acknowledged", m.acknowledged, limits::exchange_results);
    v.field("tasks", m.tasks, limits::open_assignments);
    v.field("cancel", m.cancel, limits::open_assignments);
    v.field("send", m.send, limits::open_assignments);
    v.field("decided", m.decided, limits::exchange_results);
    v.field("wait_ms", m.wait_ms);
    v.field("notice", m.notice, limits::text_bytes);
}

}  // namespace goblin
