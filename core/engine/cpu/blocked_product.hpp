// A large product cut into blocks that fit the caches, shared out over threads.
#pragma once

#include <cstdint>

#include "core/engine/cpu/product_kernel.hpp"
#include "core/engine/cpu/thread_pool.hpp"
#include "core/engine/cpu/workspace.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/product.hpp"

namespace goblin {

// How one product is cut: lengths in elements. Rows are multiples of the kernel's tile_rows, columns of its
// tile_columns, depths of its depth_group; they may reach beyond the matrix.
struct ProductBlocking {
    int64_t block_rows = 0;     // rows of A packed at once
    int64_t block_columns = 0;  // columns of B packed at once
    int64_t block_depth = 0;    // k packed at once: a chunk of the contract, or all where there are fewer
    int64_t panel_depth = 0;    // k multiplied at once: a panel of B stays in the first-level cache
    int64_t unit_rows = 0;      // a thread's item of work: its tiles stay in the second-level cache
    int64_t unit_columns = 0;
};

ProductBlocking blocking_of(const ProductOperands& operands, const ProductKernel& kernel, unsigned threads);
uint64_t workspace_bytes(const ProductBlocking& blocking, const ProductKernel& kernel, unsigned threads);

// Computes the product with `kernel` into operands.c. `operands` are sound and of the kernel's type, the
// workspace has workspace_bytes(blocking, kernel, pool.threads()) bytes, aligned as a Workspace's. Throws
// ErrorKind::cancelled when stopped.
void blocked_product(const ProductOperands& operands, const ProductKernel& kernel,
                     const ProductBlocking& blocking, ThreadPool& pool, std::byte* workspace,
                     const RunControl& control);

}  // namespace goblin
