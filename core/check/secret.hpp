// Secret draws: what a check looks at must be unpredictable to whoever made the result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace goblin {

// Fills the span with bytes nobody can predict. Tests inject a seeded one.
using SecretSource = std::function<void(std::span<uint8_t> bytes)>;

class SecretDraws {
  public:
    explicit SecretDraws(const SecretSource& source) : source_(source) {}

    // Uniform below `bound` ≥ 1, by rejection, so exactly uniform.
    uint64_t below(uint64_t bound);
    bool happens(double probability) {
        return static_cast<double>(below(uint64_t{1} << 53)) < probability * 0x1p53;
    }
    // Uniform among the 2^24 odd multiples of 2^-24 in (−1, 1): symmetric, and never zero.
    std::vector<double> signed_units(size_t count);
    std::vector<uint32_t> all_below(uint32_t bound, size_t count);
    // Uniform bits.
    template <typename T>
    std::vector<T> words(size_t count) {
        std::vector<T> values(count);
        source_({reinterpret_cast<uint8_t*>(values.data()), count * sizeof(T)});
        return values;
    }
    // Uniform among the 50,697,537 primes between 2^30 and 2^31.
    uint32_t prime();

  private:
    const SecretSource& source_;
};

}  // namespace goblin
