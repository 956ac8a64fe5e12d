// A product for a lab to compute: its operands as .npy files, and the bits that the contract says must come
// out.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/tensor/tensor.hpp"

namespace goblin::test {

class ProductFiles {
  public:
    // Writes NAME-a.npy and NAME-b.npy into the folder, and computes the product with the reference engine.
    ProductFiles(const std::filesystem::path& folder, const std::string& name, const Tensor& a,
                 const Tensor& b);

    const std::filesystem::path& a() const { return a_; }
    const std::filesystem::path& b() const { return b_; }
    const std::filesystem::path& output() const { return output_; }
    const Tensor& expected() const { return expected_; }
    // Empty when the output file is there with exactly the expected bits; else what differs.
    std::string wrong_output() const;

    // The unfinished output beside the target, while a job runs.
    std::optional<std::filesystem::path> partial() const;

  private:
    std::filesystem::path a_, b_, output_;
    Tensor expected_;
};

// Numbers of both signs that depend on the seed alone: integers over their whole range, floats normal.
Tensor random_matrix(DType dtype, int64_t rows, int64_t cols, uint64_t seed);

}  // namespace goblin::test
