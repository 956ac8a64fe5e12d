// Known answers that an engine must give before it takes work, and what it lacks in plain words.
#pragma once

#include <string>
#include <vector>

#include "core/engine/engine.hpp"

namespace goblin {

struct SelfTestReport {
    // The operand types whose products have the contract's bits.
    std::vector<DType> exact_products;
    // What is missing, one line each, for instance "f32: keeps no numbers below 2^-126, but flushes them to
    // zero"; empty when everything is right.
    std::vector<std::string> lacking;

    bool takes_products_of(DType operand) const;
};

// Runs the known answers on `engine`, in well under a second on the CPU engine. An engine that throws lacks
// what it was asked for; nothing is thrown from here but ErrorKind::cancelled.
SelfTestReport self_test(Engine& engine, const RunControl& control = {});

}  // namespace goblin
