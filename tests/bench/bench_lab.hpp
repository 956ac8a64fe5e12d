// A lab with contributors on this machine, for the measures that time whole jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/lab_process.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::bench {

class BenchLab {
  public:
    // `worker_options`: one list for each contributor, each a volunteer of its own. They are no newcomers
    // when this returns: a small job has been computed by all.
    explicit BenchLab(std::vector<std::vector<std::string>> worker_options);

    test::LabProcess& lab() { return lab_; }
    // [rows, cols] of f32 as NAME.npy in the lab's folder: random numbers, repeated every 64 MiB.
    std::filesystem::path matrix(const std::string& name, int64_t rows, int64_t cols);
    // Seconds from the submission to the complete output. Throws when the job fails.
    double product_s(const std::filesystem::path& a, const std::filesystem::path& b,
                     const std::string& policy);
    // Compares `samples` elements of the last output with the contract's bits; throws when one differs.
    void expect_exact(const std::filesystem::path& a, const std::filesystem::path& b, int samples);
    // Peak resident memory of the lab node so far.
    uint64_t lab_peak_bytes() const;

  private:
    test::LabProcess lab_;
    std::vector<std::unique_ptr<test::WorkerProcess>> workers_;
    std::filesystem::path output_;
};

}  // namespace goblin::bench
