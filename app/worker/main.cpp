// goblin-worker: takes tasks from the labs it has joined and computes them on this computer.
#include <QCoreApplication>
#include <QDir>
#include <QNetworkProxyFactory>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "app/worker/computer.hpp"
#include "app/worker/machine_limits.hpp"
#include "app/worker/options.hpp"
#include "app/worker/private_file.hpp"
#include "app/worker/signals.hpp"
#include "app/worker/worker.hpp"
#include "core/error.hpp"
#include "core/tensor/file.hpp"
#include "core/work/quantity.hpp"

namespace {

using namespace goblin;
using namespace goblin::worker;

constexpr uint64_t default_disk_bytes = uint64_t{8} << 30;

ComputerSettings computer_settings(const Options& options) {
    const MachineLimits machine = this_machine_limits();
    ComputerSettings settings;
    settings.cpu_threads = static_cast<unsigned>(options.cpu_threads.value_or(machine.processors));
    settings.memory_bytes = options.memory_bytes.value_or(machine.memory_bytes / 2);
    return settings;
}

// Of the memory that the owner lends: for tasks that wait, what travels with exchanges. The rest is for those
// that are computed.
uint64_t memory_in_hand_bytes(uint64_t memory_bytes) {
    constexpr uint64_t most = uint64_t{64} << 20;
    constexpr uint64_t least = uint64_t{1} << 20;
    return std::min(std::clamp(memory_bytes / 8, least, most), memory_bytes / 2);
}

std::filesystem::path data_folder(const Options& options) {
    if (!options.directory.empty()) return options.directory;
    if (const char* chosen = std::getenv("GOBLIN_WORKER_DIR"); chosen != nullptr && *chosen != '\0')
        return chosen;
    return (QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + "/goblin-worker")
        .toStdString();
}

// Under --dir where it is given; removed with `temporary`.
std::filesystem::path temporary_folder(const Options& options, std::optional<QTemporaryDir>& temporary) {
    if (!options.directory.empty()) make_private_folder(options.directory);
    const QString parent =
        options.directory.empty() ? QDir::tempPath() : QString::fromStdString(options.directory);
    temporary.emplace(parent + "/goblin-worker-XXXXXX");
    if (!temporary->isValid())
        throw Error(ErrorKind::io,
                    "expected to make a folder in {}, the system refused; choose another one with --dir",
                    parent.toStdString());
    return temporary->path().toStdString();
}

int print_devices(const Options& options) {
    const std::vector<FoundDevice> devices = find_devices(computer_settings(options));
    const std::string text = options.json ? devices_json(devices) : devices_text(devices);
    std::fputs(text.c_str(), stdout);
    return 0;
}

int print_self_test(const Options& options) {
    const std::vector<FoundDevice> devices = find_devices(computer_settings(options));
    const std::string text = options.json ? self_test_json(devices) : self_test_text(devices);
    std::fputs(text.c_str(), stdout);
    return all_right(devices) ? 0 : 1;
}

std::vector<std::unique_ptr<Device>> usable_devices(const ComputerSettings& settings, Log& log) {
    std::vector<std::unique_ptr<Device>> devices;
    for (FoundDevice& found : find_devices(settings)) {
        for (const std::string& line : found.lacking) log.warning("{}: {}", found.offer.name, line);
        if (!found.engine) continue;
        log.info("{}: {} threads, {:.4g} billion operations a second, {} for tasks", found.offer.name,
                 found.threads, static_cast<double>(found.offer.speed_flops) / 1e9,
                 size_text(found.offer.memory_bytes));
        devices.push_back(
            std::make_unique<Device>(std::move(found.engine), found.offer, found.offer.memory_bytes));
    }
    if (devices.empty())
        throw Error(ErrorKind::failed,
                    "expected a device that computes, found none; goblin-worker devices says why");
    return devices;
}

int work(QCoreApplication& application, const Options& options) {
    Log log(options.log_level);
    if (const std::string missing = become_humble(); !missing.empty())
        log.warning("{}; it runs all the same", missing);
    std::optional<QTemporaryDir> temporary;
    const std::filesystem::path folder =
        options.ephemeral ? temporary_folder(options, temporary) : data_folder(options);
    WorkerDirectory directory(folder, this_machine_id());
    if (options.links.empty() && directory.labs().empty())
        throw Error(ErrorKind::usage,
                    "expected a lab to work for, found none in {}; join one: goblin-worker --join LINK",
                    folder.string());
    if (directory.came_from_elsewhere())
        log.warning(
            "{} was last used on another computer or at another place: if it was copied, only one of the "
            "copies can go on; let the other join with a new invitation in a fresh directory",
            folder.string());
    WorkerSettings settings;
    settings.links = options.links;
    settings.name = options.name;
    settings.disk_bytes =
        options.disk_bytes.value_or(std::min(default_disk_bytes, free_space_bytes(folder) / 2));
    settings.finish_ms = options.finish_ms;
    settings.max_idle_ms = options.max_idle_ms;
    settings.max_lifetime_ms = options.max_lifetime_ms;
    settings.ephemeral = options.ephemeral;
    ComputerSettings computer = computer_settings(options);
    settings.in_hand_bytes = memory_in_hand_bytes(computer.memory_bytes);
    computer.memory_bytes -= settings.in_hand_bytes;
    Worker worker(directory, std::move(settings), usable_devices(computer, log), log,
                  [](int code) { QCoreApplication::exit(code); });
    const Signals signals([&worker](Wish wish) {
        switch (wish) {
            case Wish::end:
                return worker.stop("asked to");
            case Wish::pause:
                return worker.pause("the owner wants the computer");
            case Wish::resume:
                return worker.resume();
        }
    });
    return application.exec();
}

int run(QCoreApplication& application, const Options& options) {
    switch (options.command) {
        case Command::help:
            std::fputs(help_text().c_str(), stdout);
            return 0;
        case Command::version:
            std::fputs("goblin-worker " GOBLIN_VERSION "\n", stdout);
            return 0;
        case Command::devices:
            return print_devices(options);
        case Command::selftest:
            return print_self_test(options);
        case Command::work:
            return work(application, options);
    }
    return 2;
}

}  // namespace

int main(int count, char** values) {
    // What it says and writes depends on no locale. Qt from 6.8 on complains of one that isn't UTF-8, which a
    // service often has.
    setenv("LC_ALL", "C.UTF-8", 1);
    QCoreApplication application(count, values);
    std::setlocale(LC_ALL, "C");  // Qt takes the system's; numbers are written one way everywhere
    QNetworkProxyFactory::setUseSystemConfiguration(true);
    try {
        const std::vector<std::string_view> arguments(values + 1, values + count);
        return run(application, parse_options(arguments));
    } catch (const Error& error) {
        std::fprintf(stderr, "goblin-worker: %s\n", error.what());
        return error.kind() == ErrorKind::usage ? 2 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "goblin-worker: %s\n", error.what());
        return 1;
    }
}
