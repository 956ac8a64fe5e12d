// Hashes slices, and remembers.
#include "labcli/node/slice_digests.hpp"

#include <algorithm>

#include "core/work/sha256_lanes.hpp"

namespace goblin::lab {

namespace {

// As many leaves as are digested at once.
constexpr uint64_t piece_bytes = sha256_most_lanes * leaf_size_bytes;

}  // namespace

SliceDigests::Slices& SliceDigests::slices_of(const std::shared_ptr<const Plan>& plan) {
    const auto found = known_.find(plan);
    if (found != known_.end()) return found->second;
    // A plan ends with its job; what was remembered for it goes when the next job needs room.
    std::erase_if(known_, [](const auto& entry) { return entry.first.expired(); });
    return known_[plan];
}

Digest SliceDigests::digest(const std::shared_ptr<const Plan>& plan, SliceNumber slice) {
    {
        const std::lock_guard lock(mutex_);
        const Slices& slices = slices_of(plan);
        if (const auto found = slices.find(slice); found != slices.end()) return found->second;
    }
    const TensorSpec spec = plan->slice_spec(slice);
    DigestStream stream({}, spec);
    const uint64_t most_bytes = std::min(piece_bytes, spec.size_bytes());
    const auto piece = std::make_unique_for_overwrite<std::byte[]>(most_bytes);
    for (uint64_t offset = 0; offset < spec.size_bytes(); offset += most_bytes) {
        const std::span<std::byte> part(piece.get(), std::min(most_bytes, spec.size_bytes() - offset));
        plan->read_slice(slice, offset, part);
        stream.add(part);
    }
    const Digest digest = stream.finish();
    const std::lock_guard lock(mutex_);
    Slices& slices = slices_of(plan);
    if (slices.size() >= most_per_plan) slices.clear();
    slices.emplace(slice, digest);
    return digest;
}

}  // namespace goblin::lab
