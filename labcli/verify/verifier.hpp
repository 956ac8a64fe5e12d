// Verifier: looks at claims with the numbers in hand. Knows policies and arithmetic, nothing of computers or
// deadlines.
#pragma once

#include <memory>

#include "core/check/product_check.hpp"
#include "core/engine/cpu/cpu_engine.hpp"
#include "labcli/verify/claim.hpp"

namespace goblin::lab {

// One call at a time. Errors of the lab's own (an unreadable input, a full disk) come back in
// VerifyAnswer::error.
class Verifier {
  public:
    explicit Verifier(unsigned threads);

    // Verifies and, when the result is accepted, merges it.
    VerifyAnswer verify(const VerifyRequest& request);
    // Computes the task here and merges it.
    VerifyAnswer compute(Plan& plan, JobId job, TaskNumber task);

  private:
    // The claims that say the same, and the numbers they say.
    struct Opinion {
        std::shared_ptr<const std::vector<Tensor>> outputs;
        std::vector<const Claim*> claims;
    };
    std::vector<Opinion> sort_claims(const VerifyRequest& request, VerifyAnswer& answer) const;
    void by_redundancy(const VerifyRequest& request, VerifyAnswer& answer);
    void by_recomputing(const VerifyRequest& request, VerifyAnswer& answer);
    void by_product_check(const VerifyRequest& request, VerifyAnswer& answer);
    // Convicts until one opinion is left.
    void referee(const VerifyRequest& request, std::vector<Opinion>& opinions, VerifyAnswer& answer);
    void accept(const VerifyRequest& request, const Opinion& opinion, VerifyAnswer& answer);
    std::vector<Tensor> recompute(const Plan& plan, TaskNumber task);
    Tensor recompute_product(const Plan& plan, TaskNumber task);

    std::unique_ptr<CpuEngine> engine_;
    ProductChecker checker_;
};

}  // namespace goblin::lab
