// Verification policies: one row each, from which options, help, reports and the choice of `auto` come.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/graph.hpp"

namespace goblin::lab {

// How many volunteers compute each task.
enum class Replicas : uint8_t {
    one,
    chosen,   // as many as --replicas says
    settled,  // one or as chosen, once it is known what the policy becomes
};

// identifier, stored value, name, replicas, how it verifies. Beside a row, policy.cpp has wrong_IDENTIFIER
// and promise_IDENTIFIER, and the verifier a case.
#define GOBLIN_POLICIES(X)                                                                       \
    X(automatic, 0, "auto", settled,                                                             \
      "integer products: product; else redundant with enough volunteers, else recompute")        \
    X(redundant, 1, "redundant", chosen,                                                         \
      "several volunteers compute each task; equal digests, disputes go to the lab's referee")   \
    X(recompute, 2, "recompute", one, "the lab, or a trusted machine, computes each task again") \
    X(product, 3, "product", one, "a randomised check of matrix products at about 1 % of their cost")

enum class Policy : uint8_t {
#define GOBLIN_POLICY_ENUMERATOR(identifier, value, name, replicas, summary) identifier = value,
    GOBLIN_POLICIES(GOBLIN_POLICY_ENUMERATOR)
#undef GOBLIN_POLICY_ENUMERATOR
};

struct PolicyInfo {
    Policy policy;
    std::string_view name;
    Replicas replicas;
    std::string_view summary;
    // An upper bound on the probability that a wrong result is accepted.
    double (*wrong)(uint64_t replicas, bool integers);
    // What is promised, in one sentence for people.
    std::string (*promise)(uint64_t replicas, bool integers);
};
std::span<const PolicyInfo> all_policies();
// Null for a value that isn't in the table, as of a database of another version.
const PolicyInfo* find_policy(Policy policy);

// "unknown" for what isn't in the table.
std::string_view name_of(Policy policy);
std::optional<Policy> policy_from_name(std::string_view name);
// "auto, redundant, recompute or product"
std::string policy_names();

inline constexpr uint64_t default_replicas = 2;
inline constexpr uint64_t largest_replicas = 16;

struct PolicyChoice {
    Policy policy = Policy::automatic;    // as asked for
    Policy resolved = Policy::automatic;  // as in force; automatic: not settled yet
    uint64_t replicas = default_replicas;
};

// Share of the work that a conspiring group is assumed to hold where a promise depends on it.
inline constexpr double assumed_conspiring_share = 0.1;

// By the table; nothing is promised where the policy isn't in it.
double wrong_result_probability(Policy policy, uint64_t replicas, bool integers);
// "1 in 100", rounded to what is still promised; "never", "always".
std::string rate_text(double probability);
std::string promise_text(Policy policy, uint64_t replicas, bool integers);
bool keeps_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong);
// Throws ErrorKind::usage when the policy cannot promise `max_wrong`, with what could.
void expect_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong);

}  // namespace goblin::lab
