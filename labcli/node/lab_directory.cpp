// Makes, opens and locks a lab's directory.
#include "labcli/node/lab_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* settings_file = "settings.json";
constexpr const char* key_file = "lab.key";
constexpr const char* certificate_file = "lab.crt";
constexpr const char* lock_file = "lock";

int open_lock(const fs::path& path) {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0)
        throw Error(ErrorKind::io, "{}: expected to open the lab's lock, found: {}", path.string(),
                    std::strerror(errno));
    return descriptor;
}

// SQLite relies on POSIX record locks: whether a second process is kept out must be seen, not assumed.
bool record_locks_work(const fs::path& path) {
    const int first = open_lock(path);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    const bool locked = fcntl(first, F_OFD_SETLK, &whole) == 0;
    bool kept_out = false;
    if (locked) {
        const int second = open_lock(path);
        kept_out = fcntl(second, F_OFD_SETLK, &whole) != 0;
        close(second);
    }
    close(first);
    return locked && kept_out;
}

// For the caller alone. What is in a directory already would be shut away from those who use it.
void make_private(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (mkdir(path.c_str(), 0700) == 0) return;
    const int reason = errno;
    struct stat found {};
    if (reason != EEXIST || stat(path.c_str(), &found) != 0)
        throw Error(ErrorKind::io, "{}: expected to make the lab's directory, found: {}; choose another",
                    path.string(), std::strerror(reason));
    const bool empty = S_ISDIR(found.st_mode) && fs::is_empty(path, error) && !error;
    if (!empty || found.st_uid != geteuid())
        throw Error(ErrorKind::usage,
                    "{}: expected a new directory, or an empty one of this user's own, found {}; choose "
                    "another",
                    path.string(),
                    !S_ISDIR(found.st_mode) ? "a file"
                    : error                 ? error.message()
                    : !empty                ? "one with something in it"
                                            : "another user's");
    if (chmod(path.c_str(), 0700) != 0)
        throw Error(ErrorKind::io, "{}: expected to make the directory private, found: {}; choose another",
                    path.string(), std::strerror(errno));
}

void write_settings(const fs::path& path, const LabSettings& settings) {
    std::ofstream file(path);
    file << json_of(settings).dump(2) << "\n";
    file.close();
    if (!file)
        throw Error(ErrorKind::io,
                    "{}: expected to write the lab's settings, found the disk refusing; free some space",
                    path.string());
}

}  // namespace

fs::path LabDirectory::choose(const std::string& path) {
    if (!path.empty()) return fs::absolute(path);
    const char* const variable = std::getenv("GOBLIN_LAB_DIR");
    return fs::absolute(variable != nullptr && *variable != '\0' ? variable : "goblin-lab");
}

void LabDirectory::create(const fs::path& path, const LabSettings& settings) {
    expect_usable(settings, ErrorKind::usage, "--");
    std::error_code unknown;  // what can't be looked at can't be made either
    if (fs::exists(path / settings_file, unknown))
        throw Error(ErrorKind::usage,
                    "{}: expected no lab there yet, found one; choose another directory or use this one",
                    path.string());
    make_private(path);
    try {
        make_certificate(path / key_file, path / certificate_file);
        // Last: a directory with settings is a whole lab.
        write_settings(path / settings_file, settings);
    } catch (const Error&) {
        // So that it can be made here later.
        std::error_code ignored;
        for (const char* name : {settings_file, key_file, certificate_file}) fs::remove(path / name, ignored);
        throw;
    }
}

LabDirectory::LabDirectory(fs::path path) : path_(std::move(path)) {
    std::error_code refusal;
    const bool exists = fs::exists(path_ / settings_file, refusal);
    if (refusal)
        throw Error(ErrorKind::denied,
                    "{}: expected a lab's directory that this user may read, found: {}; run this as the user "
                    "who made the lab",
                    path_.string(), refusal.message());
    if (!exists)
        throw Error(ErrorKind::usage,
                    "{}: expected a lab's directory, found none; make one with `goblin-lab init {}`, or name "
                    "it with --dir or GOBLIN_LAB_DIR",
                    path_.string(), path_.string());
}

LabSettings LabDirectory::settings() const {
    std::ifstream file(path_ / settings_file);
    return settings_of(json::parse(file, nullptr, false), (path_ / settings_file).string() + ": ");
}

LabCertificate LabDirectory::certificate() const {
    return load_certificate(path_ / key_file, path_ / certificate_file);
}

LabCertificate LabDirectory::renew_key() const {
    return renew_certificate(path_ / key_file, path_ / certificate_file);
}

DirectoryLock::DirectoryLock(const LabDirectory& directory) {
    const fs::path path = directory.path() / lock_file;
    descriptor_ = open_lock(path);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        const int reason = errno;
        close(descriptor_);
        if (reason == EWOULDBLOCK)
            throw Error(ErrorKind::usage,
                        "{}: expected no lab node running on this directory, found one; stop it first, or "
                        "use another directory",
                        directory.path().string());
        throw Error(ErrorKind::io,
                    "{}: expected a file system that keeps locks, found: {}; move the lab to a local disk",
                    directory.path().string(), std::strerror(reason));
    }
    const fs::path probe = directory.path() / "lock-probe";
    const bool works = record_locks_work(probe);
    fs::remove(probe);
    if (works) return;
    close(descriptor_);
    throw Error(
        ErrorKind::io,
        "{}: expected a file system that keeps locks, found one that doesn't; move the lab to a local disk",
        directory.path().string());
}

DirectoryLock::~DirectoryLock() {
    close(descriptor_);
}

}  // namespace goblin::lab
