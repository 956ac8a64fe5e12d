// The command line of goblin-worker: one table of options, from which the parser and --help come.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/worker/log.hpp"
#include "core/work/link.hpp"

namespace goblin::worker {

enum class Command { work, devices, selftest, help, version };

struct Options {
    Command command = Command::work;
    std::vector<InvitationLink> links;
    std::string directory;  // empty: the platform's data folder
    std::string name;
    std::optional<uint64_t> cpu_threads;
    std::optional<uint64_t> memory_bytes;
    std::optional<uint64_t> disk_bytes;
    uint64_t finish_ms = 10'000;
    uint64_t max_idle_ms = 0;
    uint64_t max_lifetime_ms = 0;
    bool ephemeral = false;
    bool no_gpu = false;
    bool json = false;
    LogLevel log_level = LogLevel::info;
};

// `arguments` without the program's name. Throws ErrorKind::usage, ErrorKind::io for a link file that can't
// be read.
Options parse_options(std::span<const std::string_view> arguments);

std::string help_text();

}  // namespace goblin::worker
