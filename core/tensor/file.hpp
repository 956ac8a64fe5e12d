// File: an open file, read and written whole pieces at a time at stated offsets, and what identifies its
// contents.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

namespace goblin {

// Two equal identities mean: the same file, not written to in between (as far as its clock, of a few
// milliseconds, can tell). A change of name, owner or mode counts as a change too.
struct FileIdentity {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size_bytes = 0;
    int64_t mtime_ns = 0;
    int64_t ctime_ns = 0;
    friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

// Empty when there is nothing at the path or it cannot be looked at.
std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

// Bytes that an ordinary user can still write to the file system that holds `path`.
uint64_t free_space_bytes(const std::filesystem::path& path);

// Makes the names in a folder durable: a file renamed into it is there after a power cut.
void sync_folder(const std::filesystem::path& folder);

// What to do when there already is a file in the place of a new one.
enum class Existing : uint8_t { refuse, replace };

// At any moment, even of a power cut, one of the two names leads to the file, and neither to half of it.
// False, and nothing changed, when a file that is to be kept is at `to`; that is decided in the same moment.
bool rename_file(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing);

// Fine when there is none.
void remove_file(const std::filesystem::path& path);

// Reads and writes are safe from several threads. Every failure is an Error with the path: ErrorKind::io when
// the system refuses, ErrorKind::input when the file isn't what it should be.
class File {
  public:
    // Regular files only: a pipe or a device would block, or have no size.
    static File open_to_read(const std::filesystem::path& path);
    static File open_to_write(const std::filesystem::path& path);
    // Nothing may be at the path.
    static File create(const std::filesystem::path& path);

    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    ~File();

    const std::filesystem::path& path() const { return path_; }
    FileIdentity identity() const;

    // Reads exactly target.size() bytes; a file that ends before is an Error.
    void read_at(uint64_t offset_bytes, std::span<std::byte> target) const;
    void write_at(uint64_t offset_bytes, std::span<const std::byte> source) const;
    // Gives the file `size_bytes` and the disk space for all of them, so that later writes don't run out of
    // it.
    void preallocate(uint64_t size_bytes) const;
    // Returns once the contents and the size are on the disk.
    void sync() const;

  private:
    File(std::filesystem::path path, int flags);
    void require_regular() const;

    std::filesystem::path path_;
    int descriptor_ = -1;
};

}  // namespace goblin
