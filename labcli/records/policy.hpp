// Verification policies: one row each, from which options, help, reports and the choice of `auto` come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/graph/graph.hpp"

namespace goblin::lab {

// name, stored value, how it verifies
#define GOBLIN_POLICIES(X)                                                                                   \
    X(automatic, 0, "integer products: product; else redundant with enough volunteers, else recompute")      \
    X(redundant, 1, "several volunteers compute each task; equal digests, disputes go to the lab's referee") \
    X(recompute, 2, "the lab, or a trusted machine, computes each task again")                               \
    X(product, 3, "a randomised check of matrix products at about 1 % of their cost")

enum class Policy : uint8_t {
#define GOBLIN_POLICY_ENUMERATOR(name, value, summary) name = value,
    GOBLIN_POLICIES(GOBLIN_POLICY_ENUMERATOR)
#undef GOBLIN_POLICY_ENUMERATOR
};

// What people write: "auto" for Policy::automatic.
std::string_view name_of(Policy policy);
std::optional<Policy> policy_from_name(std::string_view name);

inline constexpr uint64_t default_replicas = 2;
inline constexpr uint64_t largest_replicas = 16;

struct PolicyChoice {
    Policy policy = Policy::automatic;    // as asked for
    Policy resolved = Policy::automatic;  // as in force; automatic: not settled yet
    uint64_t replicas = default_replicas;
};

// Share of the work that a conspiring group is assumed to hold where a promise depends on it.
inline constexpr double assumed_conspiring_share = 0.1;

// An upper bound on the probability that a wrong result is accepted, by policy.
double wrong_result_probability(Policy policy, uint64_t replicas, bool integers);
// "1 in 100", rounded to what is still promised; "never", "always".
std::string rate_text(double probability);
// What is promised, in one sentence for people.
std::string promise_text(Policy policy, uint64_t replicas, bool integers);
bool keeps_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong);
// Throws ErrorKind::usage when the policy cannot promise `max_wrong`, with what could.
void expect_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong);

}  // namespace goblin::lab
