// Mounts, fills and unmounts.
#include "tests/support/small_disk.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace goblin::test {

namespace {

bool prepared = false;
constexpr const char* filler = "filler";

}  // namespace

bool SmallDisk::prepare() {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    // root needs no user namespace, everybody else does
    if (user == 0 ? unshare(CLONE_NEWNS) != 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (user != 0) {
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
        std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    }
    // Private first: otherwise the mounts would show outside.
    prepared = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    return prepared;
}

SmallDisk::SmallDisk(uint64_t size_bytes) {
    const std::string options = "size=" + std::to_string(size_bytes);
    mounted_ = prepared && mount("tmpfs", path().c_str(), "tmpfs", 0, options.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
    if (mounted_) umount2(path().c_str(), MNT_DETACH);
}

void SmallDisk::make_read_only() const {
    if (mount("tmpfs", path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
        throw std::runtime_error("cannot make a disk read-only: " + std::string(std::strerror(errno)));
}

uint64_t SmallDisk::free_bytes() const {
    struct statvfs disk {};
    if (statvfs(path().c_str(), &disk) != 0) throw std::runtime_error("cannot look at a disk");
    return disk.f_bavail * disk.f_frsize;
}

void SmallDisk::fill(uint64_t free_wanted_bytes) const {
    const int file = open((path() / filler).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) throw std::runtime_error("cannot make a filler");
    const std::vector<char> page(4096, 'f');
    while (free_bytes() > free_wanted_bytes)
        if (write(file, page.data(), page.size()) <= 0) break;
    close(file);
}

void SmallDisk::remove_filler() const {
    std::filesystem::remove(path() / filler);
}

}  // namespace goblin::test
