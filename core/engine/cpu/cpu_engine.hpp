// The CPU engine: products at the speed of the processor's vector units, with the contract's bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/engine/product.hpp"

namespace goblin {

struct CpuEngineSettings {
    unsigned threads = 0;         // 0: one for each processor that this process may use
    std::string vector_target{};  // empty: the best; else one of cpu_vector_targets()
};

// One run or product at a time: a second caller waits (and may be cancelled while waiting). Its threads and
// packing buffers live as long as the engine.
class CpuEngine : public Engine {
  public:
    // C = A · B over the caller's memory. Errors as run(), and ErrorKind::usage for unsound operands. C holds
    // nothing meaningful after an error.
    virtual void product(const ProductOperands& operands, const RunControl& control) = 0;
    // Bytes that product() takes for itself; operands' memory isn't looked at. At most about 64 MiB and
    // 256 KiB a thread, whatever the shape.
    virtual uint64_t product_memory_bytes(const ProductOperands& operands) const = 0;
    // Bytes of packing buffers kept from earlier runs; given back before a run whose limit they would break.
    // To be asked between runs.
    virtual uint64_t kept_memory_bytes() const = 0;
    // Empty when products of such operands can run; else the reason in plain words.
    virtual std::optional<std::string> why_no_product(DType operand) const = 0;
    virtual unsigned threads() const = 0;
    // The vector unit in use, by its name in cpu_vector_targets().
    virtual std::string_view vector_target() const = 0;
};

// Throws ErrorKind::usage for more threads than max_pool_threads or an unknown vector target.
std::unique_ptr<CpuEngine> make_cpu_engine(const CpuEngineSettings& settings = {});

// The vector targets that are compiled in and that this processor has, best first: "AVX3" (AVX-512), "AVX2",
// …
std::vector<std::string> cpu_vector_targets();

}  // namespace goblin
