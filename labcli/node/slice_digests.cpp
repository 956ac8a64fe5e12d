// Hashes slices, and remembers.
#include "labcli/node/slice_digests.hpp"

#include <algorithm>
#include <memory>

#include "core/work/sha256_lanes.hpp"

namespace goblin::lab {

namespace {

// As many leaves as are digested at once.
constexpr uint64_t piece_bytes = sha256_most_lanes * leaf_size_bytes;

}  // namespace

Digest SliceDigests::digest(const Plan& plan, SliceNumber slice) {
    const SliceOrigin origin = plan.slice_origin(slice);
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = known_.find(origin); found != known_.end()) return found->second;
    }
    const TensorSpec spec = plan.slice_spec(slice);
    DigestStream stream({}, spec);
    const uint64_t most_bytes = std::min(piece_bytes, spec.size_bytes());
    const auto piece = std::make_unique_for_overwrite<std::byte[]>(most_bytes);
    for (uint64_t offset = 0; offset < spec.size_bytes(); offset += most_bytes) {
        const std::span<std::byte> part(piece.get(), std::min(most_bytes, spec.size_bytes() - offset));
        plan.read_slice(slice, offset, part);
        stream.add(part);
    }
    const Digest digest = stream.finish();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most_slices) known_.clear();
    known_.emplace(origin, digest);
    return digest;
}

}  // namespace goblin::lab
