// What a benchmark is: a name, and a function that measures one figure, beside a peer's where there is one.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace goblin::bench {

struct Measurement {
    double value = 0;
    std::string unit;                  // "GFLOP/s"
    std::string peer;                  // "oneDNN dnnl_sgemm"; empty: no peer, and the next two are absent
    std::optional<double> peer_value;  // in the same unit
    std::optional<double> ratio;       // above 1: better than the peer
    std::string note;                  // one line for people: how it was measured, what it means
};

// This measure can't be taken here; the text says why and what to do.
struct Skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Measure {
    std::string_view name;
    std::string_view summary;
    // Throws Skipped, or any exception when the measured thing went wrong: a wrong result isn't fast.
    Measurement (*take)();
};

// One source file per measure; the table is in measures.cpp.
std::span<const Measure> all_measures();

Measurement product_f32_n4096();
Measurement product_f64_n2048();
Measurement product_check();
Measurement product_memory();
Measurement small_tasks();
Measurement verified_product_8192();
Measurement verified_product_redundant();

}  // namespace goblin::bench
