// Collects a blob's leaves in a file and compares their digest at the end.
#include "app/worker/part_file.hpp"

#include <cassert>

#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

PartFile::PartFile(fs::path path, const TensorSpec& spec)
    : path_(std::move(path)),
      spec_(spec),
      file_(identity_of(path_) ? File::open_to_write(path_) : File::create(path_)) {
    const uint64_t held_bytes = std::min(file_.identity().size_bytes, spec_.size_bytes());
    std::vector<std::byte> leaf;
    for (uint64_t index = 0; index < leaf_count(spec_.size_bytes()); ++index) {
        leaf.resize(leaf_length(spec_.size_bytes(), index));
        if (leaf.empty() || index * leaf_size_bytes + leaf.size() > held_bytes) break;
        file_.read_at(index * leaf_size_bytes, leaf);
        leaves_.push_back(leaf_digest({}, index, leaf));
    }
}

void PartFile::append(uint64_t index, std::span<const std::byte> bytes) {
    assert(index == next_leaf() && bytes.size() == leaf_length(spec_.size_bytes(), index));
    file_.write_at(index * leaf_size_bytes, bytes);
    leaves_.push_back(leaf_digest({}, index, bytes));
}

bool PartFile::finish(const Digest& expected, const fs::path& place) {
    assert(complete());
    std::error_code trouble;
    if (root_digest({}, spec_, leaves_) != expected) {
        fs::remove(path_, trouble);
        return false;
    }
    fs::resize_file(path_, spec_.size_bytes(), trouble);  // a longer leftover of another spec
    if (!trouble) fs::rename(path_, place, trouble);
    if (trouble)
        throw Error(ErrorKind::io, "expected to move a blob to {}, the system refused: {}; check the disk",
                    place.string(), trouble.message());
    return true;
}

}  // namespace goblin::worker
