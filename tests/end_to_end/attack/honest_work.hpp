// Honest contributors that go on computing products while a test attacks their lab.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

class HonestWork {
  public:
    explicit HonestWork(LabProcess& lab) : lab_(lab) {}
    ~HonestWork() { end(); }
    HonestWork(const HonestWork&) = delete;
    HonestWork& operator=(const HonestWork&) = delete;

    // Two real workers join; product after product is submitted, computed by both of them (policy redundant)
    // and compared with its right bits.
    void begin();
    // Ends the current product and the workers.
    void end();
    uint64_t products() const { return products_; }
    // Waits for `count` more products from now on. Empty, or what went wrong.
    std::string goes_on(uint64_t count = 2, int patience_ms = 60'000);

  private:
    void compute_until_told();
    std::string compute_one();

    LabProcess& lab_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
    std::unique_ptr<ProductFiles> files_;
    std::atomic<uint64_t> products_{0};
    std::atomic<bool> ending_{false};
    std::mutex mutex_;
    std::string trouble_;
    std::thread thread_;
};

}  // namespace goblin::test
