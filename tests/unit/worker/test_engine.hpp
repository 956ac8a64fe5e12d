// An engine for tests: the reference engine, made slow, stubborn or broken at will.
#pragma once

#include <atomic>
#include <thread>

#include "core/engine/reference/reference_engine.hpp"
#include "core/error.hpp"

namespace goblin::test {

// Shared with the test, which may change it at any time.
struct EngineMood {
    std::atomic<uint64_t> takes_ms{0};
    std::atomic<bool> fails{false};
    std::atomic<int> runs{0};
    std::atomic<int> running{0};
    std::atomic<uint64_t> extra_memory_bytes{0};
};

class TestEngine : public Engine {
  public:
    explicit TestEngine(std::shared_ptr<EngineMood> mood) : mood_(std::move(mood)) {}
    std::string_view name() const override { return "test"; }
    std::optional<std::string> why_not(const Graph& graph) const override {
        return reference_->why_not(graph);
    }
    uint64_t memory_needed_bytes(const Graph& graph) const override {
        return reference_->memory_needed_bytes(graph) + mood_->extra_memory_bytes;
    }
    std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs,
                            const RunControl& control) override {
        ++mood_->runs;
        ++mood_->running;
        const auto start = std::chrono::steady_clock::now();
        while (!control.stop.stop_requested() &&
               std::chrono::steady_clock::now() - start < std::chrono::milliseconds(mood_->takes_ms))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --mood_->running;
        if (control.stop.stop_requested()) throw Error(ErrorKind::cancelled, "stopped");
        if (mood_->fails) throw Error(ErrorKind::numeric, "the test's engine fails");
        return reference_->run(graph, inputs, control);
    }

  private:
    std::shared_ptr<EngineMood> mood_;
    std::unique_ptr<Engine> reference_ = make_reference_engine();
};

}  // namespace goblin::test
