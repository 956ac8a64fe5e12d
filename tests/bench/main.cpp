// goblin-bench: takes measures and prints them, for people or one JSON object a line.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/bench/measure.hpp"

namespace goblin::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

std::vector<Measure> chosen(const std::vector<std::string>& names) {
    const auto all = all_measures();
    if (names.empty()) return {all.begin(), all.end()};
    std::vector<Measure> measures;
    for (const std::string& name : names) {
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const Measure& m) { return m.name == name; });
        if (found == all.end())
            throw CLI::ValidationError(
                fmt::format("expected names that --list shows, found '{}'; see goblin-bench --list", name));
        measures.push_back(*found);
    }
    return measures;
}

std::string rounded(const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : "-";
}

void print_row(std::string_view name, std::string_view value, std::string_view unit, std::string_view peer,
               std::string_view peer_value, std::string_view ratio) {
    fmt::print("{:<26} {:>10}  {:<16} {:<34} {:>10} {:>8}\n", name, value, unit, peer, peer_value, ratio);
}

void print_text(const Measure& measure, const Measurement& m) {
    print_row(measure.name, rounded(m.value), m.unit, m.peer.empty() ? "-" : m.peer, rounded(m.peer_value),
              rounded(m.ratio));
    if (!m.note.empty()) fmt::print("    {}\n", m.note);
}

void print_json(const Measure& measure, const Measurement& m) {
    nlohmann::ordered_json line;
    line["name"] = measure.name;
    line["value"] = m.value;
    line["unit"] = m.unit;
    line["peer"] = m.peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(m.peer);
    line["peer_value"] = m.peer_value ? nlohmann::ordered_json(*m.peer_value) : nlohmann::ordered_json();
    line["ratio"] = m.ratio ? nlohmann::ordered_json(*m.ratio) : nlohmann::ordered_json();
    fmt::print("{}\n", line.dump());
}

// Goes on with the other measures when one fails.
int take_all(const std::vector<Measure>& measures, bool json) {
    int status = 0;
    if (!json) print_row("name", "value", "unit", "peer", "peer value", "ratio");
    for (const Measure& measure : measures) {
        try {
            const Measurement measurement = measure.take();
            json ? print_json(measure, measurement) : print_text(measure, measurement);
        } catch (const Skipped& skipped) {
            fmt::print(stderr, "goblin-bench: {} skipped: {}\n", measure.name, skipped.what());
        } catch (const std::exception& error) {
            fmt::print(stderr, "goblin-bench: {} failed: {}\n", measure.name, error.what());
            status = exit_failed;
        }
        std::fflush(stdout);
    }
    return status;
}

int run(int argc, char** argv) {
    CLI::App app(
        "Measures GPU Goblin, beside peers where there are any.\n\n"
        "  goblin-bench                      all measures\n"
        "  goblin-bench product_f32_n4096    one of them\n"
        "  goblin-bench --json               one object a line: name, value, unit, peer, peer_value, ratio");
    std::vector<std::string> names;
    bool json = false;
    bool list = false;
    app.add_option("NAME", names, "measures to take (all)");
    app.add_flag("--json", json, "one JSON object a line");
    app.add_flag("--list", list, "show the names and what they measure");
    try {
        app.parse(argc, argv);
        if (!list) return take_all(chosen(names), json);
        for (const Measure& measure : all_measures())
            fmt::print("{:<26} {}\n", measure.name, measure.summary);
        return 0;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_usage;
    }
}

}  // namespace
}  // namespace goblin::bench

int main(int argc, char** argv) {
    return goblin::bench::run(argc, argv);
}
