// Workspace: memory that an engine keeps from run to run, so that packing does not fault in fresh pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace goblin {

class Workspace {
  public:
    static constexpr size_t alignment_bytes = 64;

    // At least `size_bytes`, aligned, with arbitrary contents; what was there before is lost. Throws
    // ErrorKind::memory when the system has none.
    std::byte* reserve(uint64_t size_bytes);
    void release() {
        memory_.reset();
        size_bytes_ = 0;
    }
    uint64_t size_bytes() const { return size_bytes_; }

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte[], Free> memory_;
    uint64_t size_bytes_ = 0;
};

}  // namespace goblin
