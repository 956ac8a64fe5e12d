// Reaches the lab node and prints.
#include "labcli/commands/session.hpp"

#include <fmt/chrono.h>

#include "core/work/cbor.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"
#include "labcli/admin/admin_client.hpp"
#include "labcli/node/lab_directory.hpp"

namespace goblin::lab {

ExitCode exit_code_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage:
            return exit_usage;
        case ErrorKind::network:
            return exit_no_node;
        default:
            return exit_failed;
    }
}

std::filesystem::path Session::lab_directory() const {
    const std::filesystem::path chosen = LabDirectory::choose(directory);
    if (!is_utf8(chosen.string()))
        throw Error(ErrorKind::usage,
                    "expected a lab's directory with a name in UTF-8, found '{}'; use another name",
                    plain_text(chosen.string()));
    return chosen;
}

nlohmann::json Session::ask(std::string_view verb, const nlohmann::json& arguments) const {
    const LabDirectory lab(lab_directory());
    AdminClient client(lab.admin_socket());
    return client.call(verb, arguments);
}

void Session::print(const nlohmann::json& document, const std::string& text) const {
    if (json)
        fmt::print("{}\n", json_line(document));
    else if (!text.empty())
        fmt::print("{}\n", plain_lines(text));
}

std::string Session::command(std::string_view words) const {
    if (directory.empty()) return fmt::format("goblin-lab {}", words);
    const std::string named = lab_directory().string();
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%";
    if (named.find_first_not_of(plain) == std::string::npos)
        return fmt::format("goblin-lab --dir {} {}", named, words);
    std::string quoted = "'";
    for (const char each : named) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
    return fmt::format("goblin-lab --dir {}' {}", quoted, words);
}

std::string json_line(const nlohmann::json& document) {
    return document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void Session::note(const std::string& text) const {
    if (!quiet) fmt::print(stderr, "{}\n", plain_lines(text));
}

uint64_t positive_duration_ms(const std::string& text) {
    const uint64_t duration_ms = parse_duration_ms(text);
    constexpr uint64_t longest_ms = uint64_t{3650} * 86'400'000;
    if (duration_ms == 0 || duration_ms > longest_ms)
        throw Error(ErrorKind::usage, "expected a duration from 1ms to 3650d, found '{}'", text);
    return duration_ms;
}

uint64_t milliseconds_of(const nlohmann::json& seconds) {
    return static_cast<uint64_t>(seconds.get<double>() * 1000);
}

std::string time_text(uint64_t at_ms) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::localtime(static_cast<std::time_t>(at_ms / 1000)),
                       at_ms % 1000);
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& what,
                      const std::string& examples) {
    CLI::App* const command = parent.add_subcommand(name, what);
    command->footer("Examples:\n" + examples);
    command->fallthrough();
    return command;
}

}  // namespace goblin::lab
