// Claims of contributors about one task, and what the verifier finds about them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "labcli/jobs/plan.hpp"
#include "labcli/records/records.hpp"

namespace goblin::lab {

// A commitment, with the numbers where they have been sent.
struct Claim {
    AssignmentId assignment{};
    SecretKey key{};
    std::vector<Digest> digests;
    bool trusted = false;  // a machine of the lab's own: its word counts like the lab's
    std::shared_ptr<const std::vector<Tensor>> outputs;
};

struct VerifyRequest {
    JobId job = 0;
    TaskNumber task = 0;
    std::shared_ptr<Plan> plan;
    Policy policy = Policy::redundant;
    uint64_t replicas = 1;
    std::vector<Claim> claims;  // at least one with outputs
};

enum class Finding : uint8_t {
    undecided,  // nothing is known against it, but the task isn't accepted yet
    agreed,
    must_send,  // its digest differs from another's numbers: the referee needs its own
    convicted,
};

struct ClaimFinding {
    AssignmentId assignment{};
    Finding finding = Finding::undecided;
    std::string reason;
};

struct VerifyAnswer {
    JobId job = 0;
    TaskNumber task = 0;
    bool accepted = false;  // and merged
    std::vector<ClaimFinding> findings;
    // What the product check did and promises; zero for other policies.
    uint64_t rows_checked = 0;
    uint64_t rows_recomputed = 0;
    double delta = 0;
    std::string error;  // the lab itself could not verify or merge: the job fails with this reason
};

}  // namespace goblin::lab
