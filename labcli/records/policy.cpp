// What each policy promises.
#include "labcli/records/policy.hpp"

#include <cmath>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

struct Row {
    Policy policy;
    std::string_view name;
};

constexpr Row rows[] = {
#define GOBLIN_POLICY_ROW(name, value, summary) Row{Policy::name, #name},
    GOBLIN_POLICIES(GOBLIN_POLICY_ROW)
#undef GOBLIN_POLICY_ROW
};

// Integer products: a wrong row passes a prime of 31 bits with 2^-30 at most, twenty vectors modulo 2^w with
// 2^-20.
const double integer_check_escape = std::ldexp(1.0, -20);

std::string with_separators(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
    return digits;
}

}  // namespace

std::string rate_text(double probability) {
    if (!(probability > 0)) return "never";
    if (probability >= 1) return "always";
    const double tries = 1 / probability;
    if (tries >= 1e18) return "less than 1 in " + with_separators(1'000'000'000'000'000'000);
    // 0.1 · 0.1 is a little more than 0.01 in binary, and not meant to be.
    const double unit = std::pow(10.0, std::floor(std::log10(tries)));
    const double round_number = std::round(tries / unit) * unit;
    constexpr double rounding = 1e-9;
    const bool meant = std::abs(round_number / tries - 1) < rounding;
    return "1 in " + with_separators(static_cast<uint64_t>(meant ? round_number : std::floor(tries)));
}

std::string_view name_of(Policy policy) {
    if (policy == Policy::automatic) return "auto";  // `auto` is a keyword
    for (const Row& row : rows)
        if (row.policy == policy) return row.name;
    return "unknown";
}

std::optional<Policy> policy_from_name(std::string_view name) {
    for (const Row& row : rows)
        if (name_of(row.policy) == name) return row.policy;
    return std::nullopt;
}

double wrong_result_probability(Policy policy, uint64_t replicas, bool integers) {
    switch (policy) {
        case Policy::recompute:
            return 0;
        case Policy::product:
            return integers ? integer_check_escape : 1;  // floats: errors are bounded, bits are not promised
        case Policy::redundant:
        case Policy::automatic:
            return std::pow(assumed_conspiring_share, static_cast<double>(replicas));
    }
    return 1;
}

std::string promise_text(Policy policy, uint64_t replicas, bool integers) {
    switch (policy) {
        case Policy::recompute:
            return "every bit is right: each task is computed again by the lab or by a machine that it "
                   "trusts; "
                   "what such a machine computed itself is taken as it is";
        case Policy::product:
            return integers ? fmt::format("every bit is right; a wrong task passes at most {} times",
                                          rate_text(integer_check_escape))
                            : "errors are bounded, bits are not promised: see the bound delta in the report";
        case Policy::redundant:
            return fmt::format(
                "every bit is right unless all {} volunteers of a task conspired; a group that holds a tenth "
                "of the work "
                "succeeds {} times",
                replicas, rate_text(wrong_result_probability(policy, replicas, integers)));
        case Policy::automatic:
            break;
    }
    return "every bit is right; how it is verified is settled when the first task is handed out";
}

bool keeps_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong) {
    // 0.1 · 0.1 is a little more than 0.01 in binary.
    constexpr double rounding = 1 + 1e-9;
    return wrong_result_probability(policy, replicas, integers) <= max_wrong * rounding;
}

void expect_promise(Policy policy, uint64_t replicas, bool integers, double max_wrong) {
    const double promised = wrong_result_probability(policy, replicas, integers);
    if (keeps_promise(policy, replicas, integers, max_wrong)) return;
    uint64_t needed = default_replicas;
    while (needed <= largest_replicas && !keeps_promise(Policy::redundant, needed, integers, max_wrong))
        ++needed;
    throw Error(
        ErrorKind::usage,
        "expected a wrong result at most with probability {:g} ({}), found that policy {} promises {:g} "
        "({}); use --verify recompute"
        "{}",
        max_wrong, rate_text(max_wrong), name_of(policy), promised, rate_text(promised),
        needed <= largest_replicas ? fmt::format(", or --verify redundant --replicas {}", needed)
                                   : std::string());
}

}  // namespace goblin::lab
