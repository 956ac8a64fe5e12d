// The worker's log: one line each on standard error with time, level and text; repeats are counted, not
// repeated.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace goblin::worker {

enum class LogLevel { error, warning, info, debug };

std::optional<LogLevel> log_level_from_name(std::string_view name);
std::string_view name_of(LogLevel level);

// May be used from any thread.
class Log {
  public:
    using Write = std::function<void(std::string_view line)>;
    using Now = std::function<std::chrono::system_clock::time_point()>;

    explicit Log(LogLevel level);
    Log(LogLevel level, Write write, Now now)
        : level_(level), write_(std::move(write)), now_(std::move(now)) {}
    ~Log();

    void say(LogLevel level, std::string_view text);

    template <typename... Args>
    void error(fmt::format_string<Args...> format, Args&&... args) {
        say(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
    }
    template <typename... Args>
    void warning(fmt::format_string<Args...> format, Args&&... args) {
        say(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
    }
    template <typename... Args>
    void info(fmt::format_string<Args...> format, Args&&... args) {
        say(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
    }
    template <typename... Args>
    void debug(fmt::format_string<Args...> format, Args&&... args) {
        if (level_ >= LogLevel::debug) say(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
    }

  private:
    void write_line(LogLevel level, std::string_view text);
    void tell_repeats();

    LogLevel level_;
    Write write_;
    Now now_;
    std::mutex mutex_;
    std::string last_text_;
    LogLevel last_level_ = LogLevel::info;
    std::chrono::system_clock::time_point last_told_{};
    uint64_t repeats_ = 0;
};

}  // namespace goblin::worker
