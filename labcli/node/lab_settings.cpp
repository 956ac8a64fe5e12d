// Reads, checks and writes a lab's settings by their table.
#include "labcli/node/lab_settings.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "core/work/plain_text.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

constexpr std::array table = {
#define GOBLIN_LAB_SETTING_ROW(name, type, initial, least, most, unit, option, what) \
    SettingInfo{#name, &LabSettings::name, least, most, unit, option, what},
    GOBLIN_LAB_SETTINGS(GOBLIN_LAB_SETTING_ROW)
#undef GOBLIN_LAB_SETTING_ROW
};

// Of UTF-8.
uint64_t characters_of(std::string_view text) {
    return static_cast<uint64_t>(
        std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

void expect_text(const SettingInfo& setting, const std::string& text, ErrorKind kind,
                 const std::string& where) {
    if (!is_plain(text))
        throw Error(kind,
                    "{}{}: expected plain text in UTF-8 without control or invisible characters, found '{}'; "
                    "choose another text",
                    where, setting.name, plain_text(text));
    const uint64_t found = setting.unit == "bytes" ? text.size() : characters_of(text);
    if (found < setting.least || found > setting.most)
        throw Error(kind, "{}{}: expected {}, found {}; choose another text", where, setting.name,
                    setting.range(), found);
}

// How many letters to insert, drop or replace.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        size_t corner = row[0]++;
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t replaced = corner + (a[i] != b[j]);
            corner = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

[[noreturn]] void refuse_unknown(const std::string& found, const std::string& where) {
    const std::string_view shortened = std::string_view(found).substr(0, limits::name_characters);
    const SettingInfo* const nearest =
        std::min_element(table.begin(), table.end(), [&](const SettingInfo& a, const SettingInfo& b) {
            return distance(a.name, shortened) < distance(b.name, shortened);
        });
    throw Error(ErrorKind::input,
                "{}expected only settings that there are, found '{}'; was {} meant? docs/lab.md lists them",
                where, plain_text(found), nearest->name);
}

template <typename Value>
void read(const SettingInfo& setting, const json& stored, Value& value, const std::string& where) {
    bool fits = stored.is_string();
    if constexpr (std::is_same_v<Value, bool>) fits = stored.is_boolean();
    if (!fits)
        throw Error(ErrorKind::input, "{}{}: expected {}, found {}; mend the file", where, setting.name,
                    setting.type(), plain_text(stored.dump(-1, ' ', true)));
    value = stored.get<Value>();
}

}  // namespace

std::string_view SettingInfo::type() const {
    return std::holds_alternative<bool LabSettings::*>(member) ? "true or false" : "text";
}

std::string SettingInfo::range() const {
    return most == 0 ? std::string() : fmt::format("{} to {} {}", least, most, unit);
}

std::span<const SettingInfo> all_settings() {
    return table;
}

void expect_usable(const LabSettings& settings, ErrorKind kind, const std::string& where) {
    for (const SettingInfo& setting : table)
        if (const auto* const text = std::get_if<std::string LabSettings::*>(&setting.member))
            expect_text(setting, settings.**text, kind, where);
}

json json_of(const LabSettings& settings) {
    json stored = json::object();
    for (const SettingInfo& setting : table)
        std::visit([&](auto member) { stored[std::string(setting.name)] = settings.*member; },
                   setting.member);
    return stored;
}

LabSettings settings_of(const json& stored, const std::string& where) {
    if (!stored.is_object())
        throw Error(ErrorKind::input,
                    "{}expected settings as JSON, found something else; mend the file or restore a copy",
                    where);
    for (const auto& [key, value] : stored.items())
        if (std::none_of(table.begin(), table.end(),
                         [&](const SettingInfo& setting) { return setting.name == key; }))
            refuse_unknown(key, where);
    LabSettings settings;
    for (const SettingInfo& setting : table)
        if (const auto found = stored.find(setting.name); found != stored.end())
            std::visit([&](auto member) { read(setting, *found, settings.*member, where); }, setting.member);
    expect_usable(settings, ErrorKind::input, where);
    return settings;
}

}  // namespace goblin::lab
