// Reads and writes durations and sizes, by one table of units each.
#include "core/work/quantity.hpp"

#include <charconv>
#include <iterator>
#include <span>

#include "core/error.hpp"
#include "core/graph/checked.hpp"

namespace goblin {

namespace {

struct Unit {
    std::string_view name;
    uint64_t factor;
};

constexpr Unit durations[] = {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
constexpr Unit sizes[] = {{"", 1},
                          {"B", 1},
                          {"KiB", uint64_t{1} << 10},
                          {"MiB", uint64_t{1} << 20},
                          {"GiB", uint64_t{1} << 30},
                          {"TiB", uint64_t{1} << 40},
                          {"KB", 1'000},
                          {"MB", 1'000'000},
                          {"GB", 1'000'000'000},
                          {"TB", 1'000'000'000'000}};
constexpr uint64_t largest = uint64_t{1} << 60;

uint64_t parse(std::string_view text, std::span<const Unit> units, std::string_view expected) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{}) {
        const std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
        for (const Unit& unit : units) {
            const uint64_t value = saturating_product({number, unit.factor});
            if (unit.name == name && value <= largest) return value;
        }
    }
    throw Error(ErrorKind::usage, "expected {}, found '{}'", expected, text);
}

}  // namespace

uint64_t parse_duration_ms(std::string_view text) {
    return parse(text, durations, "a duration like 10s, 55m or 8h");
}

uint64_t parse_size_bytes(std::string_view text) {
    return parse(text, sizes, "a size like 512MiB or 4GiB");
}

std::string size_text(uint64_t bytes) {
    if (bytes < 1024) return count_text(bytes, "byte");
    const Unit* unit = &sizes[2];
    for (const Unit& larger : std::span(sizes).subspan(2, 4))
        if (bytes >= larger.factor) unit = &larger;
    return fmt::format("{:.4g} {}", static_cast<double>(bytes) / static_cast<double>(unit->factor),
                       unit->name);
}

std::string duration_text(uint64_t ms) {
    if (ms < 1'000) return fmt::format("{} ms", ms);
    if (ms < 10'000) return fmt::format("{:.2g} s", static_cast<double>(ms) / 1e3);
    const uint64_t seconds = (ms + 500) / 1'000;
    if (seconds < 60) return fmt::format("{} s", seconds);
    const auto two_units = [](uint64_t larger, std::string_view unit, uint64_t rest,
                              std::string_view smaller) {
        return rest == 0 ? fmt::format("{} {}", larger, unit)
                         : fmt::format("{} {} {} {}", larger, unit, rest, smaller);
    };
    if (seconds < 3'600) return two_units(seconds / 60, "min", seconds % 60, "s");
    if (seconds < 86'400) return two_units(seconds / 3'600, "h", seconds % 3'600 / 60, "min");
    return two_units(seconds / 86'400, "d", seconds % 86'400 / 3'600, "h");
}

std::string flops_text(double flops) {
    constexpr std::string_view units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
    size_t unit = 0;
    for (; flops >= 1'000 && unit + 1 < std::size(units); ++unit) flops /= 1'000;
    return fmt::format("{:.{}f} {}", flops, flops < 10 && unit > 0 ? 1 : 0, units[unit]);
}

std::string count_text(uint64_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

}  // namespace goblin
