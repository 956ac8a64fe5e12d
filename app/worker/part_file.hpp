// Part file: a blob under way to the cache, kept on the disk leaf by leaf so that a fetch goes on after a
// break.
#pragma once

#include <filesystem>
#include <vector>

#include "core/tensor/file.hpp"
#include "core/work/digest.hpp"

namespace goblin::worker {

class PartFile {
  public:
    // Opens or makes the file and hashes the leaves that it holds. Throws ErrorKind::io.
    PartFile(std::filesystem::path path, const TensorSpec& spec);

    uint64_t next_leaf() const { return leaves_.size(); }
    bool complete() const { return leaves_.size() == leaf_count(spec_.size_bytes()); }
    // Leaf `index` == next_leaf(). Throws ErrorKind::io, a full disk being one reason.
    void append(uint64_t index, std::span<const std::byte> bytes);
    // The complete blob goes to its place when it is the one of that digest; else it is removed, and the
    // answer is false. Throws ErrorKind::io.
    bool finish(const Digest& expected, const std::filesystem::path& place);

  private:
    std::filesystem::path path_;
    TensorSpec spec_;
    File file_;
    std::vector<Digest> leaves_;
};

}  // namespace goblin::worker
