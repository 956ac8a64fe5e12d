// NpyWriter: a .npy file written block by block straight into place, complete only once renamed into place.
//
// Until then it is TARGET.partial-TAG beside the target, of full size and with its header, so that a full
// disk is an error at once and writing can be taken up again after a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor/block.hpp"
#include "core/tensor/file.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin {

std::filesystem::path npy_partial_path(const std::filesystem::path& target, std::string_view tag);

// Blocks that share no element may be written by several threads at once; everything else is for one thread.
// A writer that goes away without finish() or discard() leaves the unfinished file for resume().
class NpyWriter {
  public:
    // Starts from the beginning: an unfinished file of the same tag is removed. The file and its name are on
    // the disk when this returns. Throws ErrorKind::usage when the target exists and is to be kept,
    // ErrorKind::io when the disk is too full or can't be written.
    static NpyWriter create(const std::filesystem::path& target, std::string_view tag, const TensorSpec& spec,
                            Existing existing = Existing::refuse);
    // Takes up an unfinished file; what was written before the last sync() is in it. Empty when there is
    // none: then either finish() had been reached (the target is there, with the inode of identity()), or
    // somebody removed it. Throws ErrorKind::input when it isn't an unfinished file of that spec.
    static std::optional<NpyWriter> resume(const std::filesystem::path& target, std::string_view tag,
                                           const TensorSpec& spec, Existing existing = Existing::refuse);

    const TensorSpec& spec() const { return spec_; }
    const std::filesystem::path& target() const { return target_; }
    const std::filesystem::path& partial() const { return file_.path(); }
    // Device and inode stay the same through finish().
    FileIdentity identity() const { return file_.identity(); }

    // Row-major elements of a block of the matrix; a spec of another rank is one row.
    void write_block(const Block& block, std::span<const std::byte> source) const;
    // What was written before is on the disk when this returns.
    void sync() const { file_.sync(); }
    // Puts the complete file in the target's place, durably. When the target has come to exist meanwhile and
    // is to be kept, throws ErrorKind::usage and changes nothing.
    void finish();
    // Removes the unfinished file.
    void discard();

  private:
    NpyWriter(File file, std::filesystem::path target, const TensorSpec& spec, Existing existing);

    File file_;
    std::filesystem::path target_;
    TensorSpec spec_;
    Existing existing_;
    uint64_t data_offset_bytes_;
    int64_t rows_;
    int64_t cols_;
};

}  // namespace goblin
