// Parses the command line by the table below.
#include "app/worker/options.hpp"

#include <charconv>
#include <utility>

#include "app/worker/private_file.hpp"
#include "core/error.hpp"
#include "core/work/limits.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {

constexpr uint64_t link_file_bytes = 4096;
constexpr std::string_view help_hint = "; goblin-worker --help shows what there is";

std::string link_in(const std::string& path) {
    const auto bytes = read_private_file(path, link_file_bytes);
    if (!bytes) throw Error(ErrorKind::io, "expected a file with an invitation link at {}, found none", path);
    std::string text(bytes->begin(), bytes->end());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.pop_back();
    return text;
}

uint64_t count_in(const std::string& text) {
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || end != text.data() + text.size() || count == 0 || count > 1024)
        throw Error(ErrorKind::usage, "expected a number from 1 to 1024, found '{}'", text);
    return count;
}

size_t characters_in(std::string_view text) {
    size_t count = 0;
    for (const char c : text) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

std::string name_in(const std::string& text) {
    if (text.empty() || characters_in(text) > limits::name_characters || plain_text(text) != text)
        throw Error(ErrorKind::usage, "expected a name of 1 to {} printable characters, found another",
                    limits::name_characters);
    return text;
}

LogLevel level_in(const std::string& text) {
    const auto level = log_level_from_name(text);
    if (!level) throw Error(ErrorKind::usage, "expected error, warning, info or debug, found '{}'", text);
    return *level;
}

struct OptionRow {
    std::string_view name;
    std::string_view value;  // empty: a switch
    std::string_view help;
    void (*set)(Options& options, const std::string& value);
};

const OptionRow rows[] = {
    {"--join", "LINK", "join the lab of this invitation link, then work for it",
     [](Options& o, const std::string& v) { o.links.push_back(InvitationLink::parse(v)); }},
    {"--join-file", "FILE",
     "the same with the link in a file, so that it isn't seen in the list of processes",
     [](Options& o, const std::string& v) { o.links.push_back(InvitationLink::parse(link_in(v))); }},
    {"--dir", "DIR", "where identity, journal and cache live; two directories are two volunteers",
     [](Options& o, const std::string& v) { o.directory = v; }},
    {"--name", "NAME", "what the lab calls this computer",
     [](Options& o, const std::string& v) { o.name = name_in(v); }},
    {"--cpu-threads", "N", "processors to use; otherwise all that this process may use",
     [](Options& o, const std::string& v) { o.cpu_threads = count_in(v); }},
    {"--memory", "SIZE", "memory for tasks, as in 4GiB; otherwise half of what this process may use",
     [](Options& o, const std::string& v) { o.memory_bytes = parse_size_bytes(v); }},
    {"--disk", "SIZE", "disk for inputs and outputs; otherwise 8GiB, or half of what is free",
     [](Options& o, const std::string& v) { o.disk_bytes = parse_size_bytes(v); }},
    {"--no-gpu", "",
     "use the processor alone; today it does so in any case: no task runs on graphics cards yet",
     [](Options& o, const std::string&) { o.no_gpu = true; }},
    {"--finish", "TIME",
     "how long a running task may go on when asked to stop, and an ephemeral worker waits for labs to ask "
     "for "
     "results; otherwise 10s",
     [](Options& o, const std::string& v) { o.finish_ms = parse_duration_ms(v); }},
    {"--max-idle", "TIME", "end after so long without a task, as in 10m",
     [](Options& o, const std::string& v) { o.max_idle_ms = parse_duration_ms(v); }},
    {"--max-lifetime", "TIME", "end after so long, handing back in time what isn't finished, as in 55m",
     [](Options& o, const std::string& v) { o.max_lifetime_ms = parse_duration_ms(v); }},
    {"--ephemeral", "", "use a temporary directory and leave nothing behind",
     [](Options& o, const std::string&) { o.ephemeral = true; }},
    {"--json", "", "devices and selftest: print one JSON object",
     [](Options& o, const std::string&) { o.json = true; }},
    {"--log-level", "LEVEL", "error, warning, info or debug; otherwise info",
     [](Options& o, const std::string& v) { o.log_level = level_in(v); }},
    {"--version", "", "print the version",
     [](Options& o, const std::string&) { o.command = Command::version; }},
    {"--help", "", "print this", [](Options& o, const std::string&) { o.command = Command::help; }},
};

struct CommandRow {
    std::string_view name;
    Command command;
    std::string_view help;
};

constexpr CommandRow commands[] = {
    {"devices", Command::devices,
     "print the devices of this computer, their speed, and why one can't be used"},
    {"selftest", Command::selftest, "check this computer's arithmetic against known answers"},
    {"help", Command::help, "print this"},
};

const OptionRow& row_of(std::string_view name) {
    for (const OptionRow& row : rows)
        if (row.name == name) return row;
    throw Error(ErrorKind::usage, "expected an option of goblin-worker, found '{}'{}", plain_text(name),
                help_hint);
}

Command command_of(std::string_view name) {
    for (const CommandRow& row : commands)
        if (row.name == name) return row.command;
    throw Error(ErrorKind::usage, "expected a command or an option, found '{}'{}", plain_text(name),
                help_hint);
}

}  // namespace

Options parse_options(std::span<const std::string_view> arguments) {
    Options options;
    bool command_named = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (!argument.starts_with("-")) {
            if (std::exchange(command_named, true))
                throw Error(ErrorKind::usage, "expected one command, found '{}' besides{}",
                            plain_text(argument), help_hint);
            options.command = command_of(argument);
            continue;
        }
        const size_t equals = argument.find('=');
        const OptionRow& row = row_of(argument.substr(0, equals));
        const bool joined = equals != std::string_view::npos;
        if (row.value.empty() && joined)
            throw Error(ErrorKind::usage, "expected no value for {}, found one{}", row.name, help_hint);
        if (!row.value.empty() && !joined && ++i == arguments.size())
            throw Error(ErrorKind::usage, "expected {} after {}, found nothing{}", row.value, row.name,
                        help_hint);
        const std::string value(joined              ? argument.substr(equals + 1)
                                : row.value.empty() ? std::string_view()
                                                    : arguments[i]);
        try {
            row.set(options, value);
        } catch (const Error& error) {
            const bool wrong_usage = error.kind() == ErrorKind::usage;
            throw Error(error.kind(), "{}: {}{}", row.name, error.what(), wrong_usage ? help_hint : "");
        }
    }
    if (options.json && options.command == Command::work)
        throw Error(ErrorKind::usage, "expected devices or selftest with --json, found neither{}", help_hint);
    return options;
}

std::string help_text() {
    std::string text =
        "goblin-worker computes tasks for the labs that this computer has joined.\n\n"
        "  goblin-worker --join 'goblin://lab.example:7410/#KEY.TOKEN'   join a lab and work for it\n"
        "  goblin-worker                                                 go on with all labs joined before\n"
        "  goblin-worker --cpu-threads 2 --memory 2GiB                   lend no more than this\n"
        "  goblin-worker --join-file link --ephemeral --max-idle 10m     on a cluster: leave nothing behind\n"
        "  goblin-worker devices                                         what this computer can lend\n"
        "  goblin-worker selftest                                        whether its arithmetic is right\n\n"
        "Stop it with Ctrl-C (SIGTERM): what runs may finish, the rest is handed back; once more stops at "
        "once.\n"
        "SIGUSR1 pauses it: everything that isn't computed is handed back. SIGUSR2 lets it go on.\n"
        "A lab sends numbers and operations, never programs. It runs at the lowest priority.\n\ncommands\n";
    for (const CommandRow& row : commands) text += fmt::format("  {:<22} {}\n", row.name, row.help);
    text += "\noptions\n";
    for (const OptionRow& row : rows)
        text += fmt::format("  {:<22} {}\n", fmt::format("{} {}", row.name, row.value), row.help);
    text +=
        "\nGOBLIN_WORKER_DIR stands in for --dir. Exit 0: ended as asked; 1: no lab left to work for, or a "
        "self-test failed; 2: wrong usage.\n";
    return text;
}

}  // namespace goblin::worker
