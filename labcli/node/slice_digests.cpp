// Hashes slices, and remembers.
#include "labcli/node/slice_digests.hpp"

#include <algorithm>

namespace goblin::lab {

Digest SliceDigests::digest(const Plan& plan, JobId job, SliceNumber slice) {
    {
        const std::lock_guard lock(mutex_);
        const auto& slices = known_[job];
        if (const auto found = slices.find(slice); found != slices.end()) return found->second;
    }
    const TensorSpec spec = plan.slice_spec(slice);
    DigestStream stream({}, spec);
    std::vector<std::byte> piece(std::min(leaf_size_bytes, spec.size_bytes()));
    for (uint64_t offset = 0; offset < spec.size_bytes(); offset += piece.size()) {
        const std::span<std::byte> part(piece.data(),
                                        std::min<uint64_t>(piece.size(), spec.size_bytes() - offset));
        plan.read_slice(slice, offset, part);
        stream.add(part);
    }
    const Digest digest = stream.finish();
    const std::lock_guard lock(mutex_);
    auto& slices = known_[job];
    if (slices.size() >= most_per_job) slices.clear();
    slices.emplace(slice, digest);
    return digest;
}

void SliceDigests::forget(JobId job) {
    const std::lock_guard lock(mutex_);
    known_.erase(job);
}

}  // namespace goblin::lab
