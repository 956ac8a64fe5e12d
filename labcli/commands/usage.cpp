// Says what was expected of a command line, and what was found.
#include "labcli/commands/usage.hpp"

#include <algorithm>
#include <charconv>

namespace goblin::lab {

namespace {

// The command that was named, however deep.
const CLI::App& named_command(const CLI::App& app, std::string& words) {
    const CLI::App* command = &app;
    words = app.get_name();
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().front();
        words += " " + command->get_name();
    }
    return *command;
}

std::string operands_of(const CLI::App& command) {
    std::string operands;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_positional() && !option->get_required()) continue;
        const std::string name = option->get_name(option->get_positional());
        operands += option->get_required() ? " " + name : " [" + name + "]";
    }
    return operands;
}

std::string names_of_commands(const CLI::App& command) {
    std::string names;
    for (const CLI::App* each : command.get_subcommands({}))
        names += (names.empty() ? "" : ", ") + each->get_name();
    return names;
}

const CLI::Option* missing_option(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
        if (option->get_required() && option->count() == 0) return option;
    return nullptr;
}

std::string what_was_wrong(const CLI::App& app, const CLI::App& command, const std::string& words,
                           const CLI::ParseError& error) {
    const std::string usage = words + operands_of(command) + " [OPTIONS]";
    const bool is_group = !command.get_subcommands({}).empty();
    const std::vector<std::string> others = app.remaining(true);
    const bool unknown_option = !others.empty() && others.front().starts_with("-");
    switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
        case CLI::ExitCodes::RequiredError:
        case CLI::ExitCodes::ExtrasError: {
            const CLI::Option* const missing = missing_option(command);
            if (missing != nullptr && !unknown_option)
                return fmt::format("expected {}, found no {}", usage,
                                   missing->get_name(missing->get_positional()));
            if (is_group && !unknown_option)
                return fmt::format("expected a command of {} ({}), found {}", words,
                                   names_of_commands(command),
                                   others.empty() ? "none" : "'" + others.front() + "'");
            return fmt::format("expected {}, found '{}' besides", usage,
                               others.empty() ? "" : others.front());
        }
        case CLI::ExitCodes::ValidationError:
            return error.what();  // from whole_number() and the like, in these words already
        default:
            return fmt::format("expected {}, found: {}", usage, error.what());
    }
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
    std::string words;
    const CLI::App& command = named_command(app, words);
    return Error(ErrorKind::usage, "{}; `{} --help` shows examples",
                 what_was_wrong(app, command, words, error), words);
}

ValueCheck whole_number(uint64_t least, uint64_t most) {
    return [=](const std::string& text) -> std::string {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc{} && end == text.data() + text.size() && number >= least && number <= most)
            return {};
        return fmt::format("expected a number from {} to {}, found '{}'", least, most, text);
    };
}

ValueCheck one_of(std::vector<std::string_view> names) {
    return [names = std::move(names)](const std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) return {};
        return fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), text);
    };
}

std::string probability(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1) return {};
    return fmt::format("expected a probability from 0 to 1, for example 1e-6, found '{}'", text);
}

}  // namespace goblin::lab
