// A small disk of a test's own: a file system in memory that this process and its children alone see.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"

namespace goblin::test {

class SmallDisk {
  public:
    // First thing in main(): leaves the system's view of the mounts. False where the system doesn't allow
    // that.
    static bool prepare();

    // Empty-handed where prepare() was refused.
    explicit SmallDisk(uint64_t size_bytes);
    ~SmallDisk();
    explicit operator bool() const { return mounted_; }

    const std::filesystem::path& path() const { return folder_.path(); }
    void make_read_only() const;
    // Leaves so many bytes free; the filler takes the rest.
    void fill(uint64_t free_bytes = 0) const;
    void remove_filler() const;
    uint64_t free_bytes() const;

  private:
    TemporaryFolder folder_;
    bool mounted_ = false;
};

}  // namespace goblin::test
