// Turns the system's short transfers, interruptions and error codes into whole transfers or Errors.
#include "core/tensor/file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "core/error.hpp"

namespace goblin {

namespace {

constexpr mode_t new_file_mode = 0666;  // less the umask
// A read or write call moves less than 2 GiB on Linux whatever it is asked for; this is more than enough.
constexpr size_t transfer_limit_bytes = size_t{1} << 30;

std::string reason(int error_number) {
    return std::system_category().message(error_number);
}

// Calls until the system isn't interrupted by a signal; gives the last answer.
template <typename Call>
auto uninterrupted(Call call) {
    auto answer = call();
    while (answer == -1 && errno == EINTR) answer = call();
    return answer;
}

std::string_view advice_for_opening(int error_number) {
    switch (error_number) {
        case ENOENT:
        case ENOTDIR:
            return "check the path";
        case EACCES:
        case EPERM:
        case EROFS:
            return "check who may read and write it";
        case EEXIST:
            return "choose another name or remove it";
        case EMFILE:
        case ENFILE:
            return "raise the limit on open files (ulimit -n)";
        case ELOOP:
            return "give the file itself, not a link to it";
        default:
            return "check the disk and the path";
    }
}

[[noreturn]] void throw_write_error(const std::filesystem::path& path, uint64_t size_bytes,
                                    int error_number) {
    switch (error_number) {
        case ENOSPC:
            throw Error(
                ErrorKind::io,
                "expected room for {} bytes in {}, found {} bytes free on its disk; free some and try again",
                size_bytes, path.string(), free_space_bytes(path));
        case EDQUOT:
            throw Error(
                ErrorKind::io,
                "expected room for {} bytes in {}, found the disk quota used up; free some and try again",
                size_bytes, path.string());
        case EFBIG:
            throw Error(
                ErrorKind::io,
                "expected room for {} bytes in {}, found a limit on the size of files; choose another disk "
                "or raise the limit (ulimit -f)",
                size_bytes, path.string());
        default:
            throw Error(ErrorKind::io,
                        "expected to write {} bytes to {}, the system refused: {}; check the disk",
                        size_bytes, path.string(), reason(error_number));
    }
}

int error_of(int answer) {
    return answer == 0 ? 0 : errno;
}

int rename_without_replacing(const char* from, const char* to) {
    const int error_number = error_of(::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
    if (error_number != EINVAL && error_number != ENOSYS) return error_number;
    // File systems without that flag: a link never replaces either.
    return ::link(from, to) != 0 ? errno : error_of(::unlink(from));
}

int64_t nanoseconds(const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + static_cast<int64_t>(time.tv_nsec);
}

FileIdentity identity_from(const struct stat& status) {
    return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino),
            static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

}  // namespace

std::optional<FileIdentity> identity_of(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return identity_from(status);
}

uint64_t free_space_bytes(const std::filesystem::path& path) {
    struct statvfs status {};
    if (uninterrupted([&] { return ::statvfs(path.c_str(), &status); }) != 0)
        throw Error(
            ErrorKind::io,
            "expected the free space of the disk that holds {}, the system refused: {}; check the path",
            path.string(), reason(errno));
    if (status.f_blocks == 0) return UINT64_MAX;  // some network file systems don't tell
    return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

void sync_folder(const std::filesystem::path& folder) {
    const std::filesystem::path name = folder.empty() ? "." : folder;
    const int descriptor =
        uninterrupted([&] { return ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    const int answer = descriptor < 0 ? -1 : uninterrupted([&] { return ::fsync(descriptor); });
    const int error_number = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (answer != 0)
        throw Error(ErrorKind::io,
                    "expected the names in {} on the disk, the system refused: {}; check the disk",
                    name.string(), reason(error_number));
}

bool rename_file(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing) {
    const int error_number = existing == Existing::replace
                                 ? error_of(std::rename(from.c_str(), to.c_str()))
                                 : rename_without_replacing(from.c_str(), to.c_str());
    if (error_number != 0 && error_number != EEXIST)
        throw Error(ErrorKind::io,
                    "cannot rename {0} to {1}: {2}; it is complete: mend that, then type: mv {0} {1}",
                    from.string(), to.string(), reason(error_number));
    return error_number == 0;
}

void remove_file(const std::filesystem::path& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        throw Error(ErrorKind::io, "cannot remove {}: {}; remove it by hand", path.string(), reason(errno));
}

File::File(std::filesystem::path path, int flags) : path_(std::move(path)) {
    // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
    flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    descriptor_ = uninterrupted([&] { return ::open(path_.c_str(), flags, new_file_mode); });
    if (descriptor_ < 0)
        throw Error(ErrorKind::io, "cannot {} {}: {}; {}", (flags & O_CREAT) != 0 ? "create" : "open",
                    path_.string(), reason(errno), advice_for_opening(errno));
}

File File::open_to_read(const std::filesystem::path& path) {
    File file(path, O_RDONLY);
    file.require_regular();
    return file;
}

File File::open_to_write(const std::filesystem::path& path) {
    File file(path, O_RDWR | O_NOFOLLOW);
    file.require_regular();
    return file;
}

File File::create(const std::filesystem::path& path) {
    return File(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

File::~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void File::require_regular() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
        throw Error(ErrorKind::io, "cannot look at {}: {}; check the disk", path_.string(), reason(errno));
    if (!S_ISREG(status.st_mode))
        throw Error(ErrorKind::input, "expected a file at {}, found {}; give the path of a file",
                    path_.string(), S_ISDIR(status.st_mode) ? "a folder" : "a pipe or a device");
}

FileIdentity File::identity() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
        throw Error(ErrorKind::io, "cannot look at {}: {}; check the disk", path_.string(), reason(errno));
    return identity_from(status);
}

void File::read_at(uint64_t offset_bytes, std::span<std::byte> target) const {
    while (!target.empty()) {
        const ssize_t count = uninterrupted([&] {
            return ::pread(descriptor_, target.data(), std::min(target.size(), transfer_limit_bytes),
                           static_cast<off_t>(offset_bytes));
        });
        if (count < 0)
            throw Error(ErrorKind::io, "cannot read {} at byte {}: {}; check the disk", path_.string(),
                        offset_bytes, reason(errno));
        if (count == 0)
            throw Error(
                ErrorKind::input,
                "expected {} more bytes at byte {} of {}, found its end; it was cut short while in use: "
                "restore it and try again",
                target.size(), offset_bytes, path_.string());
        offset_bytes += static_cast<uint64_t>(count);
        target = target.subspan(static_cast<size_t>(count));
    }
}

void File::write_at(uint64_t offset_bytes, std::span<const std::byte> source) const {
    while (!source.empty()) {
        const ssize_t count = uninterrupted([&] {
            return ::pwrite(descriptor_, source.data(), std::min(source.size(), transfer_limit_bytes),
                            static_cast<off_t>(offset_bytes));
        });
        if (count < 0) throw_write_error(path_, source.size(), errno);
        if (count == 0)
            throw_write_error(path_, source.size(), EIO);  // no system does; it must not loop for ever
        offset_bytes += static_cast<uint64_t>(count);
        source = source.subspan(static_cast<size_t>(count));
    }
}

void File::preallocate(uint64_t size_bytes) const {
    // Beyond this limit the system doesn't just refuse, it sends SIGXFSZ, which ends the program.
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size_bytes > limit.rlim_cur)
        throw_write_error(path_, size_bytes, EFBIG);
    // Asked first, because a refused allocation may fill the disk for a moment before it is undone.
    const uint64_t present_bytes = identity().size_bytes;
    const uint64_t wanted_bytes = size_bytes - std::min(size_bytes, present_bytes);
    if (wanted_bytes > free_space_bytes(path_)) throw_write_error(path_, wanted_bytes, ENOSPC);
    int error_number = EINTR;
    while (error_number == EINTR)
        error_number = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size_bytes));
    if (error_number != 0) throw_write_error(path_, size_bytes, error_number);
}

void File::sync() const {
    // After a failure the system forgets which pages it could not write, so trying again would prove nothing.
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0)
        throw Error(
            ErrorKind::io,
            "expected {} on the disk, the system refused: {}; its contents may be incomplete: check the disk "
            "and compute it again",
            path_.string(), reason(errno));
}

}  // namespace goblin
