// A lab, three contributors and one product that is computed under each policy while somebody is killed.
#pragma once

#include <QTest>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

class KilledProduct {
  public:
    struct Sizes {
        int64_t size;  // of the square output; a multiple of `tile`
        int64_t depth;
        int64_t tile;
    };
    // Starts everything; prints the seed of what is drawn.
    explicit KilledProduct(Sizes sizes);

    LabProcess& lab() { return *lab_; }
    std::vector<std::unique_ptr<WorkerProcess>>& workers() { return workers_; }
    const ProductFiles& product() const { return *product_; }
    std::mt19937_64& random() { return random_; }
    uint64_t tasks() const;

    // Rows "policy" and "replicas" for a test.
    static void add_policies();
    uint64_t submit(const std::string& policy);
    bool running(uint64_t id) const;
    uint64_t accepted(uint64_t id) const;
    void sleep_up_to(int us);

    // Waits for the job's end; it must have the contract's bits and balanced books.
    void expect_right(uint64_t id, int replicas);
    // Over all jobs so far.
    void expect_credited_once_and_nobody_blamed() const;

  private:
    Sizes sizes_;
    std::mt19937_64 random_;
    std::unique_ptr<LabProcess> lab_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
    std::unique_ptr<ProductFiles> product_;
};

}  // namespace goblin::test
