// The vectorised inner parts of a product, one set per element type and vector target of this processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.hpp"

namespace goblin {

// Multiplies packed panels into tiles of tile_rows × tile_columns elements of C. Panels are blocks of A's
// rows and B's columns laid out in the order in which a tile reads them, filled up with zeros at the matrix's
// edge:
//   A panel: for every group of depth_group k, for every row, the group's elements
//   B panel: for every group of depth_group k, for every column, the group's elements
struct ProductKernel {
    int64_t tile_rows = 0;
    int64_t tile_columns = 0;
    int64_t depth_group = 1;           // 8-bit integers are multiplied two k at a time
    int64_t packed_element_bytes = 0;  // 8-bit integers are packed as 16-bit ones
    int64_t result_element_bytes = 0;

    // Writes one panel of `depth` k (rounded up to depth_group) from `rows` ≤ tile_rows rows of A.
    void (*pack_a)(const void* a, int64_t a_stride, int64_t rows, int64_t depth, void* panel) noexcept;
    // Writes consecutive panels for `columns` columns of B, panel_stride_bytes apart.
    void (*pack_b)(const void* b, int64_t b_stride, int64_t depth, int64_t columns, void* panels,
                   int64_t panel_stride_bytes) noexcept;
    // Carries on a tile's chains; the tile is tile_rows × tile_columns, contiguous and aligned.
    struct TileStep {
        const void* a_panel = nullptr;
        const void* b_panel = nullptr;
        int64_t depth = 0;   // a multiple of depth_group
        int64_t rows = 0;    // of the tile, its first ones
        bool begin = false;  // at +0; else with what the tile holds
        void* tile = nullptr;
        // What the next steps will read is fetched into the cache meanwhile: as much of A as this step reads,
        // and next_b_stride_bytes of B for every depth_group.
        const std::byte* next_a = nullptr;
        const std::byte* next_b = nullptr;
        int64_t next_b_stride_bytes = 0;
    };
    void (*multiply)(const TileStep& step) noexcept;
    // Writes a row of tiles with ended chains, tile_stride_bytes apart, into `rows` rows and `columns`
    // columns of C: the first chunk's are stored, a later one's are added to what is there; after the last
    // chunk +0 is added and a NaN becomes the canonical one.
    void (*store)(const void* tiles, int64_t tile_stride_bytes, int64_t rows, int64_t columns,
                  bool first_chunk, bool last_chunk, void* c, int64_t c_stride) noexcept;
};

// The kernels of one vector target, by element type.
struct ProductKernels {
    std::string target;                            // Highway's name: "AVX3" is AVX-512
    bool fused = false;                            // has fma, without which there are no float products
    const ProductKernel* of(DType operand) const;  // null for float types where `fused` is not set

    ProductKernel f32, f64, i32, i64, i8, u8;
};

// Names of the vector targets that are compiled in and that this processor has, best first.
std::vector<std::string> vector_targets();

// The kernels of a target, of the best one for an empty name. Throws ErrorKind::usage for a name that isn't
// among vector_targets().
ProductKernels product_kernels(const std::string& target);

}  // namespace goblin
