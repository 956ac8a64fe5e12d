// Opens, locks and fills a worker's directory.
#include "app/worker/worker_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "app/worker/private_file.hpp"
#include "core/error.hpp"
#include "core/tensor/file.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

// Reads a file of exactly that many bytes, or draws and keeps it.
template <size_t size>
FixedBytes<size> drawn_once(const fs::path& path) {
    if (const auto bytes = read_private_file(path, size)) {
        if (bytes->size() != size)
            throw Error(ErrorKind::input,
                        "expected {} bytes in {}, found {}; restore the file, or remove it and join again",
                        size, path.string(), bytes->size());
        FixedBytes<size> kept{};
        std::copy(bytes->begin(), bytes->end(), kept.begin());
        return kept;
    }
    const auto drawn = random_bytes<FixedBytes<size>>();
    write_private_file(path, drawn);
    return drawn;
}

}  // namespace

std::string this_machine_id() {
    try {
        const auto bytes = read_private_file("/etc/machine-id", 4096);
        return bytes ? std::string(bytes->begin(), bytes->end()) : std::string();
    } catch (const Error&) {
        return {};  // only a courtesy rests on it
    }
}

WorkerDirectory::WorkerDirectory(fs::path path, std::string_view machine_id) : path_(std::move(path)) {
    make_private_folder(path_);
    make_private_folder(path_ / "labs");
    take_lock();
    try {
        seed_ = drawn_once<32>(path_ / "seed");
        computer_ = drawn_once<16>(path_ / "computer");
        check_machine(machine_id);
    } catch (...) {
        ::close(lock_);
        throw;
    }
}

WorkerDirectory::~WorkerDirectory() {
    if (lock_ >= 0) ::close(lock_);
}

void WorkerDirectory::take_lock() {
    const fs::path file = path_ / "lock";
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0)
        throw Error(ErrorKind::io,
                    "expected to open {}, the system refused; choose another directory with --dir",
                    file.string());
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
    const bool held = errno == EWOULDBLOCK;
    ::close(lock_);
    if (held)
        throw Error(ErrorKind::denied,
                    "expected {} to be free, found another goblin-worker running in it; stop that one, or "
                    "choose another "
                    "directory with --dir (two directories are two volunteers)",
                    path_.string());
    throw Error(
        ErrorKind::io,
        "expected a file system with locks for {}, found one without; choose a local directory with --dir",
        path_.string());
}

void WorkerDirectory::check_machine(std::string_view machine_id) {
    std::vector<uint8_t> place(machine_id.begin(), machine_id.end());
    const auto identity = identity_of(path_);
    if (machine_id.empty() || !identity) return;
    for (int shift = 0; shift < 64; shift += 8)
        place.push_back(static_cast<uint8_t>(identity->inode >> shift));
    const Digest mark = sha256(place);
    const auto kept = read_private_file(path_ / "machine", 4096);
    came_from_elsewhere_ =
        kept && !std::equal(kept->begin(), kept->end(), mark.bytes.begin(), mark.bytes.end());
    if (!kept || came_from_elsewhere_) write_private_file(path_ / "machine", mark.bytes);
}

fs::path WorkerDirectory::lab_folder(const Digest& lab_key) const {
    return path_ / "labs" / lab_key.hex();
}

std::vector<Digest> WorkerDirectory::labs() const {
    std::vector<Digest> labs;
    std::error_code trouble;
    for (fs::directory_iterator entry(path_ / "labs", trouble), end; !trouble && entry != end;
         entry.increment(trouble))
        if (const auto key = Digest::from_hex(entry->path().filename().string())) labs.push_back(*key);
    if (trouble)
        throw Error(
            ErrorKind::io,
            "expected to list {}, the system refused: {}; check the disk and the folder's permissions",
            (path_ / "labs").string(), trouble.message());
    std::sort(labs.begin(), labs.end());
    return labs;
}

}  // namespace goblin::worker
