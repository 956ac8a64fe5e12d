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

}  // namespace

fs::path LabDirectory::choose(const std::string& path) {
    if (!path.empty()) return fs::absolute(path);
    const char* const variable = std::getenv("GOBLIN_LAB_DIR");
    return fs::absolute(variable != nullptr && *variable != '\0' ? variable : "goblin-lab");
}

void LabDirectory::create(const fs::path& path, const LabSettings& settings) {
    expect_usable(settings, ErrorKind::usage, "--");
    if (fs::exists(path / settings_file))
        throw Error(ErrorKind::usage,
                    "{}: expected no lab there yet, found one; choose another directory or use this one",
                    path.string());
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
        throw Error(ErrorKind::io, "{}: expected to make the lab's directory, found: {}", path.string(),
                    error.message());
    fs::permissions(path, fs::perms::owner_all);
    make_certificate(path / key_file, path / certificate_file);
    // Last: a directory with settings is a whole lab.
    std::ofstream file(path / settings_file);
    file << json_of(settings).dump(2) << "\n";
    file.close();
    if (!file)
        throw Error(ErrorKind::io,
                    "{}: expected to write the lab's settings, found the disk refusing; free some space",
                    path.string());
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
