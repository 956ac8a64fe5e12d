// Writes operands, computes what is expected of them, compares.
#include "tests/support/product_files.hpp"

#include <cstring>
#include <random>

#include "core/engine/reference/reference_engine.hpp"
#include "core/error.hpp"
#include "core/graph/graph.hpp"
#include "core/tensor/npy_reader.hpp"
#include "core/tensor/npy_writer.hpp"

namespace goblin::test {

namespace {

void write_npy(const std::filesystem::path& file, const Tensor& tensor) {
    NpyWriter writer = NpyWriter::create(file, "test", tensor.spec());
    writer.write_block({0, 0, tensor.shape()[0], tensor.shape()[1]}, tensor.bytes());
    writer.finish();
}

Tensor product_of(const Tensor& a, const Tensor& b) {
    std::vector<Tensor> operands;
    operands.push_back(a.clone());
    operands.push_back(b.clone());
    return std::move(make_reference_engine()->run(product_graph(a.spec(), b.spec()), operands, {})[0]);
}

}  // namespace

ProductFiles::ProductFiles(const std::filesystem::path& folder, const std::string& name, const Tensor& a,
                           const Tensor& b)
    : a_(folder / (name + "-a.npy")),
      b_(folder / (name + "-b.npy")),
      output_(folder / (name + "-c.npy")),
      expected_(product_of(a, b)) {
    write_npy(a_, a);
    write_npy(b_, b);
}

std::string ProductFiles::wrong_output() const {
    if (!std::filesystem::exists(output_)) return "expected " + output_.string() + ", found no such file";
    const Tensor found = NpyReader(output_).read_all();
    if (found.spec() != expected_.spec())
        return fmt::format("expected {}, found {}", expected_.spec().text(), found.spec().text());
    if (found.same_bits(expected_)) return {};
    const size_t size = size_of(found.dtype());
    size_t wrong = 0;
    std::optional<size_t> first;
    for (size_t i = 0; i < found.size_bytes() / size; ++i) {
        if (std::memcmp(found.bytes().data() + i * size, expected_.bytes().data() + i * size, size) == 0)
            continue;
        if (!first) first = i;
        ++wrong;
    }
    return fmt::format("expected the contract's bits, found {} wrong elements of {}, the first is number {}",
                       wrong, found.size_bytes() / size, *first);
}

std::optional<std::filesystem::path> ProductFiles::partial() const {
    const std::string prefix = output_.filename().string() + ".partial-";
    for (const auto& entry : std::filesystem::directory_iterator(output_.parent_path()))
        if (entry.path().filename().string().starts_with(prefix)) return entry.path();
    return std::nullopt;
}

Tensor random_matrix(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
    std::mt19937_64 random(seed);
    Tensor matrix(dtype, Shape{rows, cols});
    std::normal_distribution<double> normal;
    if (dtype == DType::f32) {
        for (float& element : matrix.as<float>()) element = static_cast<float>(normal(random));
    } else if (dtype == DType::f64) {
        for (double& element : matrix.as<double>()) element = normal(random);
    } else {
        for (std::byte& byte : matrix.bytes()) byte = static_cast<std::byte>(random());
    }
    return matrix;
}

}  // namespace goblin::test
