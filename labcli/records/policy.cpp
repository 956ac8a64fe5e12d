// What each policy promises.
#include "labcli/records/policy.hpp"

#include <cmath>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

// Integer products: a wrong row passes a prime of 31 bits with 2^-30 at most, twenty vectors modulo 2^w with
// 2^-20.
const double integer_check_escape = std::ldexp(1.0, -20);

std::string with_separators(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
    return digits;
}

double wrong_recompute(uint64_t, bool) {
    return 0;
}
std::string promise_recompute(uint64_t, bool) {
    return "every bit is right: each task is computed again by the lab or by a machine that it trusts; what "
           "such a machine computed itself is taken as it is";
}

double wrong_product(uint64_t, bool integers) {
    return integers ? integer_check_escape : 1;  // floats: errors are bounded, bits are not promised
}
std::string promise_product(uint64_t, bool integers) {
    return integers ? fmt::format("every bit is right; a wrong task passes at most {} times",
                                  rate_text(integer_check_escape))
                    : "errors are bounded, bits are not promised: see the bound delta in the report";
}

double wrong_redundant(uint64_t replicas, bool) {
    return std::pow(assumed_conspiring_share, static_cast<double>(replicas));
}
std::string promise_redundant(uint64_t replicas, bool integers) {
    return fmt::format(
        "every bit is right unless all {} volunteers of a task conspired; a group that holds a tenth of the "
        "work succeeds {} times",
        replicas, rate_text(wrong_redundant(replicas, integers)));
}

double wrong_automatic(uint64_t replicas, bool integers) {
    return wrong_redundant(replicas, integers);  // the most that it may become
}
std::string promise_automatic(uint64_t, bool) {
    return "every bit is right; how it is verified is settled when the first task is handed out";
}

constexpr PolicyInfo table[] = {
#define GOBLIN_POLICY_ROW(identifier, value, name, replicas, summary)                      \
    PolicyInfo{Policy::identifier,  name, Replicas::replicas, summary, wrong_##identifier, \
               promise_##identifier},
    GOBLIN_POLICIES(GOBLIN_POLICY_ROW)
#undef GOBLIN_POLICY_ROW
};

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

std::span<const PolicyInfo> all_policies() {
    return table;
}

const PolicyInfo* find_policy(Policy policy) {
    for (const PolicyInfo& row : table)
        if (row.policy == policy) return &row;
    return nullptr;
}

std::string_view name_of(Policy policy) {
    const PolicyInfo* const row = find_policy(policy);
    return row == nullptr ? "unknown" : row->name;
}

std::optional<Policy> policy_from_name(std::string_view name) {
    for (const PolicyInfo& row : table)
        if (row.name == name) return row.policy;
    return std::nullopt;
}

std::string policy_names() {
    std::string names;
    for (const PolicyInfo& row : table) {
        if (&row != table) names += &row == std::end(table) - 1 ? " or " : ", ";
        names += row.name;
    }
    return names;
}

double wrong_result_probability(Policy policy, uint64_t replicas, bool integers) {
    const PolicyInfo* const row = find_policy(policy);
    return row == nullptr ? 1 : row->wrong(replicas, integers);
}

std::string promise_text(Policy policy, uint64_t replicas, bool integers) {
    const PolicyInfo* const row = find_policy(policy);
    return row == nullptr ? "nothing is promised" : row->promise(replicas, integers);
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
