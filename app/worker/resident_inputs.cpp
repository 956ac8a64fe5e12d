// Keeps account of tensors in memory.
#include "app/worker/resident_inputs.hpp"

#include <cassert>

namespace goblin::worker {

void ResidentInputs::add(const BlobName& name, Tensor tensor) {
    assert(!has(name));
    const uint64_t size = tensor.size_bytes();
    size_bytes_ += size;
    residents_.emplace(name, Resident{std::move(tensor), size, 0, ++wants_});
}

void ResidentInputs::want(const BlobName& name) {
    Resident& resident = residents_.at(name);
    ++resident.wants;
    resident.last_wanted = ++wants_;
}

void ResidentInputs::unwant(const BlobName& name) {
    Resident& resident = residents_.at(name);
    assert(resident.wants > 0);
    --resident.wants;
}

Tensor ResidentInputs::lend(const BlobName& name) {
    Resident& resident = residents_.at(name);
    assert(resident.tensor && resident.wants > 0);
    Tensor tensor = std::move(*resident.tensor);
    resident.tensor.reset();
    return tensor;
}

void ResidentInputs::give_back(const BlobName& name, Tensor tensor) {
    Resident& resident = residents_.at(name);
    assert(!resident.tensor && tensor.size_bytes() == resident.size_bytes);
    resident.tensor.emplace(std::move(tensor));
}

void ResidentInputs::shrink_to(uint64_t limit_bytes) {
    while (size_bytes_ > limit_bytes) {
        auto oldest = residents_.end();
        for (auto resident = residents_.begin(); resident != residents_.end(); ++resident)
            if (resident->second.wants == 0 &&
                (oldest == residents_.end() || resident->second.last_wanted < oldest->second.last_wanted))
                oldest = resident;
        if (oldest == residents_.end()) return;
        size_bytes_ -= oldest->second.size_bytes;
        residents_.erase(oldest);
    }
}

}  // namespace goblin::worker
