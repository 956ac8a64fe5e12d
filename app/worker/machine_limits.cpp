// Reads /proc and /sys/fs/cgroup.
#include "app/worker/machine_limits.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> lines_of(const fs::path& file) {
    std::ifstream stream(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> words_of(const std::string& line, char separator = ' ') {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; std::getline(stream, word, separator);)
        if (!word.empty() || separator != ' ') words.push_back(word);
    return words;
}

// Empty for "max", a negative number, or what is no number.
std::optional<uint64_t> number_in(const std::string& text) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> number_of(const fs::path& file) {
    const auto lines = lines_of(file);
    return lines.empty() ? std::nullopt : number_in(lines[0]);
}

// A hierarchy of control groups that this process is in: where it is mounted, and the folder of our group.
struct Hierarchy {
    fs::path mount;
    fs::path group;
    bool version2 = false;
    std::string controllers;
};

bool has_word(const std::string& list, const std::string& word) {
    const auto words = words_of(list, ',');
    return std::find(words.begin(), words.end(), word) != words.end();
}

// Our group's path in the hierarchy that has this controller ("" for version 2), from /proc/self/cgroup.
std::optional<std::string> group_path(const fs::path& root, const std::string& controller) {
    for (const std::string& line : lines_of(root / "proc/self/cgroup")) {
        const auto parts = words_of(line, ':');
        if (parts.size() < 3) continue;
        const bool fits = controller.empty() ? parts[1].empty() : has_word(parts[1], controller);
        if (fits) return parts[2];
    }
    return std::nullopt;
}

// `controller` empty: version 2. From /proc/self/mountinfo: fields 4 (root in the hierarchy) and 5 (mount
// point), then after "-" the type, the source and the options.
std::optional<Hierarchy> find_hierarchy(const fs::path& root, const std::string& controller) {
    const auto path = group_path(root, controller);
    if (!path) return std::nullopt;
    for (const std::string& line : lines_of(root / "proc/self/mountinfo")) {
        const auto words = words_of(line);
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 6 || words.end() - dash < 4) continue;
        const bool fits =
            controller.empty() ? dash[1] == "cgroup2" : dash[1] == "cgroup" && has_word(dash[3], controller);
        if (!fits) continue;
        const std::string& mounted_root = words[3];
        std::string below = *path;
        if (mounted_root != "/" && below.starts_with(mounted_root)) below = below.substr(mounted_root.size());
        const fs::path mount = root / fs::path(words[4]).relative_path();
        fs::path group = (mount / fs::path(below).relative_path()).lexically_normal();
        std::error_code hidden;
        if (below.find("..") != std::string::npos || !fs::is_directory(group, hidden)) group = mount;
        return Hierarchy{mount, group, controller.empty(), controller};
    }
    return std::nullopt;
}

// Calls `look` with our group's folder and all above it up to the mount: every one of them limits us.
template <typename Look>
void each_level(const Hierarchy& hierarchy, Look look) {
    for (fs::path folder = hierarchy.group;; folder = folder.parent_path()) {
        look(folder);
        if (folder == hierarchy.mount || folder == folder.parent_path()) return;
    }
}

struct Quota {
    uint64_t us = 0;
    uint64_t period_us = 0;
};

std::optional<Quota> quota_of(const fs::path& folder, bool version2) {
    std::optional<uint64_t> quota;
    std::optional<uint64_t> period;
    if (version2) {
        const auto lines = lines_of(folder / "cpu.max");
        const auto words = lines.empty() ? std::vector<std::string>{} : words_of(lines[0]);
        if (words.size() < 2) return std::nullopt;
        quota = number_in(words[0]);
        period = number_in(words[1]);
    } else {
        quota = number_of(folder / "cpu.cfs_quota_us");
        period = number_of(folder / "cpu.cfs_period_us");
    }
    if (!quota || !period || *period == 0) return std::nullopt;
    return Quota{*quota, *period};
}

uint64_t machine_memory_bytes(const fs::path& root) {
    for (const std::string& line : lines_of(root / "proc/meminfo")) {
        const auto words = words_of(line);
        if (words.size() >= 2 && words[0] == "MemTotal:") return number_in(words[1]).value_or(0) * 1024;
    }
    return 0;
}

void apply_processor_quota(const fs::path& root, MachineLimits& limits) {
    for (const char* controller : {"", "cpu"}) {
        const auto hierarchy = find_hierarchy(root, controller);
        if (!hierarchy) continue;
        each_level(*hierarchy, [&](const fs::path& folder) {
            const auto quota = quota_of(folder, hierarchy->version2);
            if (!quota) return;
            const auto whole =
                static_cast<unsigned>(std::clamp<uint64_t>(quota->us / quota->period_us, 1, 1u << 20));
            if (whole >= limits.processors) return;
            limits.processors = whole;
            limits.processors_by = "the control group's processor quota";
        });
    }
}

void apply_memory_limit(const fs::path& root, MachineLimits& limits) {
    for (const char* controller : {"", "memory"}) {
        const auto hierarchy = find_hierarchy(root, controller);
        if (!hierarchy) continue;
        each_level(*hierarchy, [&](const fs::path& folder) {
            const auto limit =
                number_of(folder / (hierarchy->version2 ? "memory.max" : "memory.limit_in_bytes"));
            if (!limit || *limit >= limits.memory_bytes) return;
            limits.memory_bytes = *limit;
            limits.memory_by = "the control group's memory limit";
        });
    }
}

}  // namespace

MachineLimits read_machine_limits(const fs::path& root, unsigned affinity) {
    MachineLimits limits{std::max(1u, affinity), "the processors that this process may use",
                         machine_memory_bytes(root), "the machine's memory"};
    apply_processor_quota(root, limits);
    apply_memory_limit(root, limits);
    return limits;
}

MachineLimits this_machine_limits() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    return read_machine_limits("/", known ? static_cast<unsigned>(CPU_COUNT(&allowed)) : 1);
}

std::string become_humble() {
    std::string missing;
    umask(077);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) missing = "the system doesn't take away new privileges";
    const sched_param idle{};
    if (sched_setscheduler(0, SCHED_IDLE, &idle) != 0 && setpriority(PRIO_PROCESS, 0, 19) != 0)
        missing = "the system doesn't lower the priority";
    return missing;
}

}  // namespace goblin::worker
