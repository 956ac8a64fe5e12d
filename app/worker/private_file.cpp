// Reads and atomically replaces small files.
#include "app/worker/private_file.hpp"

#include "core/error.hpp"
#include "core/tensor/file.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

std::optional<std::vector<uint8_t>> read_private_file(const fs::path& path, uint64_t limit_bytes) {
    const auto identity = identity_of(path);
    if (!identity) return std::nullopt;
    const File file = File::open_to_read(path);
    const uint64_t size = file.identity().size_bytes;
    if (size > limit_bytes)
        throw Error(ErrorKind::input,
                    "expected at most {} bytes in {}, found {}; move the file away and join again",
                    limit_bytes, path.string(), size);
    std::vector<uint8_t> bytes(size);
    file.read_at(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

void write_private_file(const fs::path& path, std::span<const uint8_t> bytes) {
    fs::path fresh = path;
    fresh += ".new";
    std::error_code ignored;
    fs::remove(fresh, ignored);  // of a crash in between
    {
        const File file = File::create(fresh);
        fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write, ignored);
        file.write_at(0, std::as_bytes(bytes));
        file.sync();
    }
    std::error_code trouble;
    fs::rename(fresh, path, trouble);
    if (trouble)
        throw Error(ErrorKind::io, "expected to write {}, the system refused: {}; check the disk",
                    path.string(), trouble.message());
    sync_folder(path.parent_path());
}

void make_private_folder(const fs::path& path) {
    std::error_code trouble;
    if (fs::is_directory(path, trouble)) return;
    fs::create_directories(path, trouble);
    if (trouble)
        throw Error(ErrorKind::io,
                    "expected to make the folder {}, the system refused: {}; choose another one with --dir",
                    path.string(), trouble.message());
    fs::permissions(path, fs::perms::owner_all, trouble);
}

}  // namespace goblin::worker
