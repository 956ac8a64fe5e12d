// Resident inputs: blobs read from the cache into memory, kept from one task to the next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "app/worker/blob_cache.hpp"
#include "core/tensor/tensor.hpp"

namespace goblin::worker {

// The caller locks. A tensor is lent to the engine for a run (engines take the tensors themselves) and comes
// back.
class ResidentInputs {
  public:
    bool has(const BlobName& name) const { return residents_.contains(name); }
    void add(const BlobName& name, Tensor tensor);
    // A wanted one isn't dropped. Wants count.
    void want(const BlobName& name);
    void unwant(const BlobName& name);
    // To one borrower at a time.
    Tensor lend(const BlobName& name);
    void give_back(const BlobName& name, Tensor tensor);

    uint64_t size_bytes() const { return size_bytes_; }
    // Drops unwanted ones, least recently wanted first, until at most `limit_bytes` are left or all are
    // wanted.
    void shrink_to(uint64_t limit_bytes);

  private:
    struct Resident {
        std::optional<Tensor> tensor;  // none while it is lent
        uint64_t size_bytes = 0;
        uint64_t wants = 0;
        uint64_t last_wanted = 0;  // counts wants of all
    };
    std::map<BlobName, Resident> residents_;
    uint64_t size_bytes_ = 0;
    uint64_t wants_ = 0;
};

}  // namespace goblin::worker
