// The product check: is C the product A · B? Freivalds' randomised check, at about 1 % of the product's cost.
//
// Integers are checked exactly: a wrong result escapes with the stated probability. Floats are bounded: a
// result with an element that is off by more than the stated bound escapes with the stated probability.
// Whatever looks doubtful is computed again by the contract's chain, bit for bit, and only a differing bit
// convicts, so an honest result never is. docs/product-check.md derives the bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "core/check/matrix_source.hpp"
#include "core/check/secret.hpp"

namespace goblin {

struct ProductCheckOptions {
    SecretSource secret;               // empty: the system's generator
    double escape_probability = 1e-6;  // that floats further off than the bound may escape with; the smaller
                                       // it is, the wider the bound
    std::stop_token stop;              // obeyed within 100 ms
};

// The proof that a result is wrong: one element, its bits as they should be and as they are (in the low
// bits).
struct ProductConviction {
    int64_t row = 0;
    int64_t col = 0;
    uint64_t expected_bits = 0;
    uint64_t found_bits = 0;
    friend bool operator==(const ProductConviction&, const ProductConviction&) = default;
};

struct ProductVerdict {
    std::optional<ProductConviction> conviction;
    // The probability that a result is accepted although it is wrong (integers), or although an element has
    // neither the contract's bits nor keeps the bounds (floats). 0 where every element was computed again.
    double escape_probability = 0;
    // Floats: |c_ij − (A·B)_ij| ≤ absolute_bound, and ≤ relative_bound · ‖row i of A‖₂ · ‖column j of B‖₂ (+
    // underflow_bound, for products that leave the type's normal range). 0 where bits are promised; infinity:
    // nothing is.
    double relative_bound = 0;
    double underflow_bound = 0;
    double absolute_bound = 0;
    int64_t rows_recomputed = 0;      // bit for bit, over their whole length
    int64_t elements_recomputed = 0;  // bit for bit, besides
    // Floats: the largest residual that was taken for rounding, in units of √K·u·Σ_k|a_ik|·‖b_k‖.
    double largest_residual = 0;

    bool accepted() const { return !conviction; }
};

// Threads and buffers that live from check to check. One check at a time.
class ProductChecker {
  public:
    // 0: one thread for each processor. Throws as ThreadPool does.
    explicit ProductChecker(unsigned threads = 0);
    ~ProductChecker();

    // A is [M, K], B [K, N], C [M, N], of the types that the operator matmul gives. Each is read once, in
    // blocks of about 1 MiB a thread; what is recomputed is read again, and B where its columns need a closer
    // look. Takes up to about 150 MiB whatever the shape, and 100 bytes (400 where integers wrap) for each of
    // M, K and N. Throws ErrorKind::input when the matrices don't fit together, ErrorKind::numeric when
    // floats are to be checked on a processor without fma, ErrorKind::cancelled when stopped, and what the
    // sources throw.
    ProductVerdict check(const MatrixSource& a, const MatrixSource& b, const MatrixSource& c,
                         const ProductCheckOptions& options = {});

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace goblin
