// The experiment behind λ of the product check: how large the residuals of honest products are, in units of
// the threshold at λ = 1, for families of data and lengths of sums. Prints the table of
// docs/product-check.md.
//
//   product_check_levels [--short] [SEED]
//
// Fails when an honest result is convicted, or when more than a thousandth of the rows of a family that isn't
// hostile is computed again.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/check/doubt.hpp"
#include "core/check/residuals.hpp"
#include "tests/support/checked_product.hpp"
#include "tests/support/product_families.hpp"

namespace goblin {
namespace {

struct Plan {
    int64_t rows, cols;
    std::vector<int64_t> depths;
    int tiles;  // for each family and depth
};

struct Outcome {
    double median_level = 0;
    double largest_level = 0;
    double relative_bound = 0;  // the widest
    int64_t rows = 0;
    int64_t rows_above = 0;  // λ
    int64_t rows_recomputed = 0;
    int convicted = 0;
};

// The levels alone, of fresh secrets.
template <typename T>
std::vector<double> levels_of(const CheckedProduct& product, uint64_t seed) {
    static CheckThreads threads(2);
    static const std::unique_ptr<CpuEngine> engine = make_cpu_engine({.threads = 1, .vector_target = {}});
    const MemoryMatrix a(product.a), b(product.b), c(product.c);
    const Tile tile{a, b, c, threads, *engine, {}};
    const SecretSource source = seeded_secret(seed);
    SecretDraws draws(source);
    DrawnElements<T> drawn(tile, draws);
    std::vector<double> levels = measure_residuals<T>(tile, draws, drawn).level;
    std::sort(levels.begin(), levels.end());
    return levels;
}

template <typename T>
Outcome measure(const ProductFamily<T>& family, const Plan& plan, int64_t depth, std::mt19937_64& random) {
    Outcome outcome;
    for (int i = 0; i < plan.tiles; ++i) {
        const CheckedProduct product = checked_product<T>(
            plan.rows, depth, plan.cols, [&](Tensor& a, Tensor& b) { family.fill(random, a, b); });
        const std::vector<double> levels = levels_of<T>(product, random());
        const ProductVerdict verdict = product.check(random());
        outcome.median_level = std::max(outcome.median_level, levels[levels.size() / 2]);
        outcome.largest_level = std::max(outcome.largest_level, levels.back());
        outcome.relative_bound = std::max(outcome.relative_bound, verdict.relative_bound);
        outcome.rows += plan.rows;
        outcome.rows_above += levels.end() - std::upper_bound(levels.begin(), levels.end(), doubt_level);
        outcome.rows_recomputed += verdict.rows_recomputed;
        outcome.convicted += !verdict.accepted();
    }
    return outcome;
}

template <typename T>
bool run(const Plan& plan, std::mt19937_64& random) {
    bool passed = true;
    for (const ProductFamily<T>& family : product_families<T>) {
        Outcome whole;
        for (const int64_t depth : plan.depths) {
            const Outcome outcome = measure(family, plan, depth, random);
            fmt::print("| {} | {} | {} | {:.3g} | {:.3g} | {} | {} | {:.1g} |\n", name_of(dtype_of<T>()),
                       family.name, depth, outcome.median_level, outcome.largest_level, outcome.rows_above,
                       outcome.rows_recomputed, outcome.relative_bound);
            std::fflush(stdout);
            whole.rows += outcome.rows;
            whole.rows_recomputed += outcome.rows_recomputed;
            whole.convicted += outcome.convicted;
        }
        if (whole.convicted > 0) {
            fmt::print("FAILED: {} honest tiles of {} were convicted\n", whole.convicted, family.name);
            passed = false;
        }
        if (!family.hostile && whole.rows_recomputed * 1000 > whole.rows) {
            fmt::print("FAILED: {} of {} rows of {} were computed again\n", whole.rows_recomputed, whole.rows,
                       family.name);
            passed = false;
        }
    }
    return passed;
}

int run_all(bool shortened, uint64_t seed) {
    const Plan plan =
        shortened ? Plan{1000, 64, {64, 5000}, 2} : Plan{1000, 128, {64, 1024, 4096, 16384, 65536}, 3};
    std::mt19937_64 random(seed);
    fmt::print("seed {}; {} tiles of {} x {} each; levels in units of the threshold at lambda = 1\n\n", seed,
               plan.tiles, plan.rows, plan.cols);
    fmt::print(
        "| type | family | K | median level | largest level | rows above {} | rows recomputed | bound |\n",
        doubt_level);
    fmt::print("|---|---|---:|---:|---:|---:|---:|---:|\n");
    const bool f32 = run<float>(plan, random);
    const bool f64 = run<double>(plan, random);
    return f32 && f64 ? 0 : 1;
}

}  // namespace
}  // namespace goblin

int main(int count, char** arguments) {
    bool shortened = false;
    uint64_t seed = goblin::any_seed();
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        if (argument == "--short")
            shortened = true;
        else
            seed = std::stoull(argument);
    }
    return goblin::run_all(shortened, seed);
}
