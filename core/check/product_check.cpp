// Chooses the check for the element type; products without terms are compared with zero.
#include "core/check/product_check.hpp"

#include <numeric>
#include <thread>

#include "core/arithmetic/float_environment.hpp"
#include "core/check/float_check.hpp"
#include "core/check/integer_check.hpp"
#include "core/check/tile.hpp"
#include "core/error.hpp"
#include "core/graph/graph.hpp"
#include "core/work/identity.hpp"

namespace goblin {

struct ProductChecker::Parts {
    explicit Parts(unsigned thread_count)
        : threads(thread_count), engine(make_cpu_engine({.threads = thread_count, .vector_target = {}})) {}

    CheckThreads threads;
    std::unique_ptr<CpuEngine> engine;
};

ProductChecker::ProductChecker(unsigned threads)
    : parts_(std::make_unique<Parts>(threads != 0 ? threads
                                                  : std::max(1u, std::thread::hardware_concurrency()))) {}

ProductChecker::~ProductChecker() = default;

namespace {

void expect_fit(const MatrixSource& a, const MatrixSource& b, const MatrixSource& c) {
    const TensorSpec product = output_specs(product_graph(a.spec(), b.spec()))[0];
    if (c.spec() != product)
        throw Error(ErrorKind::input, "expected a product {} to check, found {}", product.text(),
                    c.spec().text());
}

// No terms: every element is +0.
template <typename T>
ProductVerdict check_empty_sums(const Tile& tile) {
    std::vector<int64_t> rows(static_cast<size_t>(tile.m()));
    std::iota(rows.begin(), rows.end(), 0);
    ProductVerdict verdict;
    verdict.conviction = expect_rows<T>(tile, rows, 0);
    return verdict;
}

}  // namespace

ProductVerdict ProductChecker::check(const MatrixSource& a, const MatrixSource& b, const MatrixSource& c,
                                     const ProductCheckOptions& options) {
    expect_fit(a, b, c);
    if (!(options.escape_probability > 0 && options.escape_probability < 1))
        throw Error(ErrorKind::usage, "expected an escape probability between 0 and 1, found {}",
                    options.escape_probability);
    if (const auto reason = parts_->engine->why_no_product(a.dtype()))
        throw Error(ErrorKind::numeric, *reason);
    if (c.rows() == 0 || c.cols() == 0) return {};
    const FloatEnvironment environment;
    const SecretSource source = options.secret ? options.secret : SecretSource(fill_random);
    SecretDraws draws(source);
    const Tile tile{a, b, c, parts_->threads, *parts_->engine, options.stop};
    return with_product_type(a.dtype(), [&](auto zero) {
        using T = decltype(zero);
        if (tile.k() == 0) return check_empty_sums<T>(tile);
        if constexpr (std::is_floating_point_v<T>)
            return check_floats<T>(tile, draws, options.escape_probability);
        else
            return check_integers<T>(tile, draws);
    });
}

}  // namespace goblin
