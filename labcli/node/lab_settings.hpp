// A lab's settings: one table, from which the file is read, checked and written, and from which the options
// of `init` and the documentation come.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/error.hpp"
#include "core/work/limits.hpp"

namespace goblin::lab {

// name, type, default, least and most of a text and what that counts, option of `init` (none: only in the
// file), what it is for
#define GOBLIN_LAB_SETTINGS(X)                                                                            \
    X(name, std::string, "a lab", 1, limits::name_characters, "characters", "--name",                     \
      "what contributors see")                                                                            \
    X(computes, std::string, "matrix products", 0, limits::text_bytes, "bytes", "--computes",             \
      "what the lab says it computes")                                                                    \
    X(contact, std::string, "", 0, limits::text_bytes, "bytes", "--contact", "whom contributors may ask") \
    X(approve_by_hand, bool, false, 0, 0, "", "--approve",                                                \
      "a person approves each new volunteer (goblin-lab node approve)")                                   \
    X(spread_over_networks, bool, true, 0, 0, "", "",                                                     \
      "replicas of a task never go to one network, except on the lab's own machine")

// What `init` fixes; a small JSON file that people may edit while the lab node is stopped.
struct LabSettings {
#define GOBLIN_LAB_SETTING_MEMBER(name, type, initial, least, most, unit, option, what) type name = initial;
    GOBLIN_LAB_SETTINGS(GOBLIN_LAB_SETTING_MEMBER)
#undef GOBLIN_LAB_SETTING_MEMBER
};

struct SettingInfo {
    std::string_view name;
    std::variant<std::string LabSettings::*, bool LabSettings::*> member;
    uint64_t least;
    uint64_t most;
    std::string_view unit;
    std::string_view option;
    std::string_view what;

    // "text", "true or false"
    std::string_view type() const;
    // "1 to 64 characters"; empty where there is none.
    std::string range() const;
};
std::span<const SettingInfo> all_settings();

// Throws with the setting that can't be used, what was expected and what was found. `where` stands before
// the setting's name.
void expect_usable(const LabSettings& settings, ErrorKind kind, const std::string& where);

nlohmann::json json_of(const LabSettings& settings);
// What a file says; settings it doesn't name have their defaults. Throws ErrorKind::input, with `where`, for
// one that isn't in the table and for values that can't be used.
LabSettings settings_of(const nlohmann::json& stored, const std::string& where);

}  // namespace goblin::lab
