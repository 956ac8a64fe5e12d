// Memory that an engine keeps from run to run.
#include "core/engine/cpu/workspace.hpp"

#include "core/error.hpp"

namespace goblin {

std::byte* Workspace::reserve(uint64_t size_bytes) {
    if (size_bytes > size_bytes_) {
        release();
        const uint64_t padded = (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment_bytes, padded)));
        if (memory_ == nullptr)
            throw Error(ErrorKind::memory,
                        "expected {} bytes of memory for packing a product's operands, the system has none "
                        "left; close other programs or use fewer threads",
                        padded);
        size_bytes_ = padded;
    }
    return memory_.get();
}

}  // namespace goblin
