// What a wrong command line is told, and checks of values that say it themselves.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "labcli/commands/session.hpp"

namespace goblin::lab {

// What was expected, what was found, and where examples are. `app` has parsed up to the error.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

// Checks for CLI::Option::check(): empty, or what is wrong.
using ValueCheck = std::function<std::string(const std::string&)>;
ValueCheck whole_number(uint64_t least, uint64_t most);
ValueCheck one_of(std::vector<std::string_view> names);
std::string probability(const std::string& text);
// What `parse` throws is what is wrong.
template <typename Parse>
ValueCheck value_of(Parse parse) {
    return [parse](const std::string& text) -> std::string {
        try {
            parse(text);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
}

// Numbers of jobs, computers and invitations, which JSON carries exactly.
inline constexpr uint64_t largest_id = (uint64_t{1} << 53) - 1;

}  // namespace goblin::lab
