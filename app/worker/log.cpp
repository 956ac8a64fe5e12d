// Writes log lines and counts repeats.
#include "app/worker/log.hpp"

#include <fmt/chrono.h>

#include <cstdio>

namespace goblin::worker {

namespace {

// A text that keeps coming is told again, with its count, at most this often.
constexpr std::chrono::minutes repeat_interval{10};

constexpr std::pair<LogLevel, std::string_view> level_names[] = {
    {LogLevel::error, "error"},
    {LogLevel::warning, "warning"},
    {LogLevel::info, "info"},
    {LogLevel::debug, "debug"},
};

}  // namespace

std::optional<LogLevel> log_level_from_name(std::string_view name) {
    for (const auto& [level, known] : level_names)
        if (known == name) return level;
    return std::nullopt;
}

std::string_view name_of(LogLevel level) {
    for (const auto& [known, name] : level_names)
        if (known == level) return name;
    return "unknown";
}

Log::Log(LogLevel level)
    : Log(
          level,
          [](std::string_view line) {
              std::fwrite(line.data(), 1, line.size(), stderr);
              std::fflush(stderr);
          },
          [] { return std::chrono::system_clock::now(); }) {}

Log::~Log() {
    tell_repeats();
}

void Log::say(LogLevel level, std::string_view text) {
    if (level > level_) return;
    const std::lock_guard lock(mutex_);
    const auto now = now_();
    if (text == last_text_ && level == last_level_) {
        ++repeats_;
        if (now - last_told_ < repeat_interval) return;
        tell_repeats();
        last_told_ = now;
        return;
    }
    tell_repeats();
    last_text_ = text;
    last_level_ = level;
    last_told_ = now;
    write_line(level, text);
}

void Log::tell_repeats() {
    if (repeats_ > 0)
        write_line(last_level_,
                   fmt::format("(the last line came {} more time{})", repeats_, repeats_ == 1 ? "" : "s"));
    repeats_ = 0;
}

void Log::write_line(LogLevel level, std::string_view text) {
    const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now_());
    write_(fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {:<7} {}\n", fmt::gmtime(seconds), name_of(level), text));
}

}  // namespace goblin::worker
