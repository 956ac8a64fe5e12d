// Session: what all commands share: common options, the way to the lab node, and how things are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace goblin::lab {

enum ExitCode : int { exit_done = 0, exit_failed = 1, exit_usage = 2, exit_no_node = 3, exit_detached = 4 };
ExitCode exit_code_of(ErrorKind kind);

struct Session {
    std::string directory;
    bool json = false;
    bool quiet = false;
    int exit_code = exit_done;

    std::filesystem::path lab_directory() const;
    // Asks the lab node. Throws its error; ErrorKind::network when none runs.
    nlohmann::json ask(std::string_view verb, const nlohmann::json& arguments) const;
    // With --json the document on one line, else the text.
    void print(const nlohmann::json& document, const std::string& text) const;
    // A command line for people to type: with --dir where it was given.
    std::string command(std::string_view words) const;
    // To standard error, unless --quiet.
    void note(const std::string& text) const;
};

// JSON in ASCII on one line: nothing in it steers a terminal, whatever its texts say.
std::string json_line(const nlohmann::json& document);

// A duration as in quantity.hpp, of up to ten years. Throws ErrorKind::usage.
uint64_t positive_duration_ms(const std::string& text);

// For duration_text(), of a number of seconds in JSON.
uint64_t milliseconds_of(const nlohmann::json& seconds);
// Local time of a moment in milliseconds since 1970.
std::string time_text(uint64_t at_ms);

// Adds a subcommand with help that teaches by example.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& what,
                      const std::string& examples);

}  // namespace goblin::lab
