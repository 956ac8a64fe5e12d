// What the lab node knows about volunteers, computers, invitations, jobs and assignments, as plain records.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.hpp"
#include "core/work/exchange.hpp"
#include "labcli/records/policy.hpp"

namespace goblin::lab {

using VolunteerId = uint64_t;
using ComputerId = uint64_t;
using InvitationId = uint64_t;
using JobId = uint64_t;
using TaskNumber = uint64_t;
using AssignmentNumber = uint64_t;

// Tables of states: the values are stored and never change.
#define GOBLIN_MEMBER_STATES(X) X(pending, 0) X(approved, 1) X(banned, 2)
#define GOBLIN_JOB_STATES(X) X(queued, 0) X(running, 1) X(done, 3) X(failed, 4) X(stopped, 5)
#define GOBLIN_ASSIGNMENT_STATES(X) \
    X(issued, 0)                    \
    X(committed, 1)                 \
    X(returned, 2) X(agreed, 3) X(disagreed, 4) X(expired, 5) X(refused, 6) X(failed, 7) X(cancelled, 8)

#define GOBLIN_STATE_ENUMERATOR(name, value) name = value,
#define GOBLIN_STATE_NAME(name, value) \
    case State::name:                  \
        return #name;
#define GOBLIN_STATE_TABLE(Name, TABLE)                           \
    enum class Name : uint8_t { TABLE(GOBLIN_STATE_ENUMERATOR) }; \
    inline std::string_view name_of(Name state) {                 \
        using State = Name;                                       \
        switch (state) { TABLE(GOBLIN_STATE_NAME) }               \
        return "unknown";                                         \
    }
GOBLIN_STATE_TABLE(MemberState, GOBLIN_MEMBER_STATES)
GOBLIN_STATE_TABLE(JobState, GOBLIN_JOB_STATES)
GOBLIN_STATE_TABLE(AssignmentState, GOBLIN_ASSIGNMENT_STATES)
#undef GOBLIN_STATE_TABLE
#undef GOBLIN_STATE_NAME
#undef GOBLIN_STATE_ENUMERATOR

inline bool is_over(JobState state) {
    return state == JobState::done || state == JobState::failed || state == JobState::stopped;
}

inline bool is_over(AssignmentState state) {
    return state != AssignmentState::issued && state != AssignmentState::committed &&
           state != AssignmentState::returned && state != AssignmentState::expired;
}

struct Invitation {
    InvitationId id = 0;
    Digest token_hash;
    uint64_t uses_left = 1;
    uint64_t expires_at_ms = 0;  // since 1970
    bool trusted = false;
    bool revoked = false;
    uint64_t created_at_ms = 0;  // since 1970
};

struct Volunteer {
    VolunteerId id = 0;
    FixedBytes<32> public_key{};
    InvitationId invitation = 0;
    bool trusted = false;
    MemberState state = MemberState::approved;
    uint64_t agreed = 0;
    uint64_t disagreed = 0;
    uint64_t failed = 0;
    uint64_t credit_flops = 0;
    uint64_t created_at_ms = 0;  // since 1970: the first enrolment
};

struct Computer {
    ComputerId id = 0;
    VolunteerId volunteer = 0;
    FixedBytes<16> mark{};  // tells this volunteer's computers apart
    std::string name;
    Digest credential_hash;
    MemberState state = MemberState::approved;
    uint64_t speed_flops = 0;    // measured by the lab; 0: not yet
    uint64_t created_at_ms = 0;  // since 1970: the first enrolment
};

// The highest numbers that were ever given, of what can be deleted: none is given twice, or the newcomer
// would inherit what is said about the one before it.
struct LastNumbers {
    ComputerId computer = 0;
    JobId job = 0;
    AssignmentNumber assignment = 0;
    friend bool operator==(const LastNumbers&, const LastNumbers&) = default;
};

// What verifying a job found so far.
struct VerificationTally {
    uint64_t rows_checked = 0;  // by the product check
    uint64_t rows_recomputed = 0;
    double delta = 0;  // the largest bound that the product check promised
    uint64_t disputes = 0;
    uint64_t computed_by_lab = 0;  // tasks that contributors failed at
    friend bool operator==(const VerificationTally&, const VerificationTally&) = default;
};

struct JobRecord {
    JobId id = 0;
    std::string kind;
    std::string specification;  // JSON, for job_kind(kind).open
    PolicyChoice choice;
    uint64_t tasks = 0;
    JobState state = JobState::queued;
    std::string reason;
    VerificationTally tally;
    std::string report;  // JSON: who computed what, how it was verified; written when the job ends
    uint64_t created_at_ms = 0;
    uint64_t ended_at_ms = 0;
};

// An output that was uploaded, and its share of the memory for such.
struct ArrivedOutput {
    Tensor tensor;
    std::shared_ptr<const void> reservation;
};

struct Assignment {
    AssignmentNumber number = 0;
    AssignmentId id{};
    SecretKey key{};
    JobId job = 0;
    TaskNumber task = 0;
    ComputerId computer = 0;
    VolunteerId volunteer = 0;
    AssignmentState state = AssignmentState::issued;
    uint64_t duration_ms = 0;
    std::vector<Digest> digests;
    uint64_t compute_us = 0;
    std::string reason;
    // Below: only in memory.
    uint64_t issued_ms = 0;    // monotonic
    uint64_t deadline_ms = 0;  // monotonic
    uint64_t flops = 0;
    uint64_t send_ms = 0;  // how long sending may take, once asked to
    bool asked_to_send = false;
    uint64_t told_to_send_ms = 0;  // when the contributor was told last, monotonic; 0: not yet
    std::shared_ptr<std::vector<std::optional<ArrivedOutput>>> arriving;  // uploaded one by one
    std::shared_ptr<const std::vector<Tensor>> outputs;                   // all of them, not yet decided
};

// An assignment's id carries its number, so that the record is found without an index; the rest is secret.
AssignmentId make_assignment_id(AssignmentNumber number);
AssignmentNumber number_of(const AssignmentId& id);

struct AssignmentIdHash {
    size_t operator()(const AssignmentId& id) const;
};

}  // namespace goblin::lab
