// The policies at work.
#include "labcli/verify/verifier.hpp"

#include <algorithm>
#include <cassert>

#include "core/error.hpp"
#include "labcli/verify/referee.hpp"

namespace goblin::lab {

namespace {

// Agreement on so few bytes says little: the lab recomputes them.
constexpr uint64_t smallest_agreement_bytes = 64;
// What a recomputation reads of the left operand at a time.
constexpr uint64_t recompute_block_bytes = uint64_t{32} << 20;

std::vector<Digest> digests_of(const std::vector<Tensor>& outputs, const SecretKey& key) {
    std::vector<Digest> digests;
    for (const Tensor& output : outputs) digests.push_back(tensor_digest(key, output));
    return digests;
}

void find(VerifyAnswer& answer, const Claim& claim, Finding finding, std::string reason = {}) {
    answer.findings.push_back({claim.assignment, finding, std::move(reason)});
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    return !first_difference(a, b);
}

bool someone_has(const VerifyAnswer& answer, Finding finding) {
    return std::any_of(answer.findings.begin(), answer.findings.end(),
                       [&](const ClaimFinding& found) { return found.finding == finding; });
}
bool someone_must_send(const VerifyAnswer& answer) {
    return someone_has(answer, Finding::must_send);
}
bool someone_is_convicted(const VerifyAnswer& answer) {
    return someone_has(answer, Finding::convicted);
}

uint64_t size_of_outputs(const std::vector<Tensor>& outputs) {
    uint64_t size = 0;
    for (const Tensor& output : outputs) size += output.size_bytes();
    return size;
}

}  // namespace

Verifier::Verifier(unsigned threads) : engine_(make_cpu_engine({threads, {}})), checker_(threads) {}

VerifyAnswer Verifier::verify(const VerifyRequest& request) {
    VerifyAnswer answer;
    answer.job = request.job;
    answer.task = request.task;
    try {
        switch (request.policy) {
            case Policy::redundant:
                by_redundancy(request, answer);
                break;
            case Policy::product:
                by_product_check(request, answer);
                break;
            case Policy::recompute:
            case Policy::automatic:
                by_recomputing(request, answer);
                break;
        }
        // An input that changed while it was read would convict whoever computed with what it was.
        if (someone_is_convicted(answer)) request.plan->check_inputs();
    } catch (const std::exception& error) {
        answer.findings.clear();
        answer.accepted = false;
        answer.error = error.what();
    }
    return answer;
}

VerifyAnswer Verifier::compute(Plan& plan, JobId job, TaskNumber task) {
    VerifyAnswer answer;
    answer.job = job;
    answer.task = task;
    try {
        plan.check_inputs();
        plan.merge(task, recompute(plan, task));
        answer.accepted = true;
    } catch (const std::exception& error) {
        answer.error = error.what();
    }
    return answer;
}

std::vector<Verifier::Opinion> Verifier::sort_claims(const VerifyRequest& request,
                                                     VerifyAnswer& answer) const {
    std::vector<Opinion> opinions;
    for (const Claim& claim : request.claims) {
        if (!claim.outputs) continue;
        if (digests_of(*claim.outputs, claim.key) != claim.digests) {
            find(answer, claim, Finding::convicted, "the numbers don't have the digest that was committed");
            continue;
        }
        const auto alike = std::find_if(opinions.begin(), opinions.end(), [&](const Opinion& opinion) {
            return same(*opinion.outputs, *claim.outputs);
        });
        if (alike != opinions.end())
            alike->claims.push_back(&claim);
        else
            opinions.push_back({claim.outputs, {&claim}});
    }
    for (const Claim& claim : request.claims) {
        if (claim.outputs) continue;
        const auto alike = std::find_if(opinions.begin(), opinions.end(), [&](const Opinion& opinion) {
            return digests_of(*opinion.outputs, claim.key) == claim.digests;
        });
        if (alike != opinions.end()) alike->claims.push_back(&claim);
        // Without numbers to compare with, another draw decides who sends.
        else
            find(answer, claim, opinions.empty() ? Finding::undecided : Finding::must_send);
    }
    return opinions;
}

void Verifier::by_redundancy(const VerifyRequest& request, VerifyAnswer& answer) {
    std::vector<Opinion> opinions = sort_claims(request, answer);
    if (opinions.empty() || someone_must_send(answer))
        return;  // the referee speaks when all numbers are there
    if (opinions.size() > 1) referee(request, opinions, answer);
    if (opinions.empty() || opinions[0].claims.size() < request.replicas) return;
    if (size_of_outputs(*opinions[0].outputs) < smallest_agreement_bytes)
        by_recomputing(request, answer);
    else
        accept(request, opinions[0], answer);
}

void Verifier::referee(const VerifyRequest& request, std::vector<Opinion>& opinions, VerifyAnswer& answer) {
    request.plan->check_inputs();
    const auto convict_unless = [&](const auto& is_right, const auto& reason) {
        for (const Opinion& opinion : opinions)
            if (!is_right(opinion))
                for (const Claim* claim : opinion.claims)
                    find(answer, *claim, Finding::convicted, reason(opinion));
        std::erase_if(opinions, [&](const Opinion& opinion) { return !is_right(opinion); });
    };
    if (!request.plan->is_product()) {
        const std::vector<Tensor> exact = recompute(*request.plan, request.task);
        convict_unless([&](const Opinion& opinion) { return same(*opinion.outputs, exact); },
                       [&](const Opinion& opinion) {
                           const Difference place = *first_difference(*opinion.outputs, exact);
                           return describe_difference(*opinion.outputs, place, element_bytes(exact, place));
                       });
        return;
    }
    while (opinions.size() > 1) {
        const Difference place = *first_difference(*opinions[0].outputs, *opinions[1].outputs);
        const std::vector<std::byte> exact = exact_product_element(*request.plan, request.task, place);
        convict_unless(
            [&](const Opinion& opinion) { return element_bytes(*opinion.outputs, place) == exact; },
            [&](const Opinion& opinion) { return describe_difference(*opinion.outputs, place, exact); });
    }
}

void Verifier::by_recomputing(const VerifyRequest& request, VerifyAnswer& answer) {
    answer.findings.clear();
    std::vector<Opinion> opinions = sort_claims(request, answer);
    const bool trusted = std::any_of(request.claims.begin(), request.claims.end(),
                                     [](const Claim& claim) { return claim.trusted; });
    if (opinions.empty() || (trusted && someone_must_send(answer))) return;
    if (trusted && opinions.size() > 1) referee(request, opinions, answer);
    request.plan->check_inputs();
    std::optional<std::vector<Tensor>> exact;
    for (const Opinion& opinion : opinions) {
        if (std::any_of(opinion.claims.begin(), opinion.claims.end(),
                        [](const Claim* claim) { return claim->trusted; })) {
            accept(request, opinion, answer);
            return;
        }
        if (!exact) exact = recompute(*request.plan, request.task);
        const std::optional<Difference> place = first_difference(*opinion.outputs, *exact);
        if (!place) {
            accept(request, opinion, answer);
            continue;
        }
        for (const Claim* claim : opinion.claims)
            find(answer, *claim, Finding::convicted,
                 describe_difference(*opinion.outputs, *place, element_bytes(*exact, *place)));
    }
}

void Verifier::by_product_check(const VerifyRequest& request, VerifyAnswer& answer) {
    assert(request.plan->is_product());
    const std::vector<Opinion> opinions = sort_claims(request, answer);
    if (opinions.empty()) return;
    request.plan->check_inputs();
    const std::vector<SliceNumber> slices = request.plan->slices(request.task);
    const auto a = request.plan->slice_matrix(slices[0]);
    const auto b = request.plan->slice_matrix(slices[1]);
    for (const Opinion& opinion : opinions) {
        const Tensor& c = opinion.outputs->at(0);
        const ProductVerdict verdict = checker_.check(*a, *b, MemoryMatrix(c));
        answer.rows_checked += static_cast<uint64_t>(c.shape()[0]);
        answer.rows_recomputed += static_cast<uint64_t>(verdict.rows_recomputed);
        answer.delta = std::max(answer.delta, verdict.absolute_bound);
        if (verdict.accepted()) {
            accept(request, opinion, answer);
            continue;
        }
        const ProductConviction& proof = *verdict.conviction;
        for (const Claim* claim : opinion.claims)
            find(answer, *claim, Finding::convicted,
                 fmt::format("element [{}, {}]: expected the bits {:x}, found {:x}", proof.row, proof.col,
                             proof.expected_bits, proof.found_bits));
    }
}

void Verifier::accept(const VerifyRequest& request, const Opinion& opinion, VerifyAnswer& answer) {
    request.plan->merge(request.task, *opinion.outputs);
    for (const Claim* claim : opinion.claims) find(answer, *claim, Finding::agreed);
    answer.accepted = true;
}

std::vector<Tensor> Verifier::recompute(const Plan& plan, TaskNumber task) {
    std::vector<Tensor> outputs;
    if (plan.is_product()) {
        outputs.push_back(recompute_product(plan, task));
        return outputs;
    }
    std::vector<Tensor> inputs;
    for (const SliceNumber slice : plan.slices(task)) {
        Tensor& input = inputs.emplace_back(plan.slice_spec(slice));
        plan.read_slice(slice, 0, input.bytes());
    }
    return engine_->run(plan.graph(task), inputs, {});
}

Tensor Verifier::recompute_product(const Plan& plan, TaskNumber task) {
    const std::vector<SliceNumber> slices = plan.slices(task);
    const TensorSpec a_spec = plan.slice_spec(slices[0]);
    Tensor b(plan.slice_spec(slices[1]));
    plan.read_slice(slices[1], 0, b.bytes());
    Tensor c(output_specs(plan.graph(task))[0]);
    const int64_t depth = a_spec.shape[1];
    const uint64_t row_bytes = static_cast<uint64_t>(depth) * size_of(a_spec.dtype);
    const int64_t rows_at_once =
        std::max<int64_t>(1, static_cast<int64_t>(recompute_block_bytes / std::max<uint64_t>(row_bytes, 1)));
    for (int64_t row = 0; row < a_spec.shape[0]; row += rows_at_once) {
        Tensor a(a_spec.dtype, Shape{std::min(rows_at_once, a_spec.shape[0] - row), depth});
        plan.read_slice(slices[0], static_cast<uint64_t>(row) * row_bytes, a.bytes());
        ProductOperands operands{a.dtype(), a.shape()[0],     depth,        b.shape()[1], a.bytes().data(),
                                 depth,     b.bytes().data(), b.shape()[1], nullptr,      c.shape()[1]};
        operands.c = c.bytes().data() + static_cast<size_t>(row * c.shape()[1]) * size_of(c.dtype());
        engine_->product(operands, {});
    }
    return c;
}

}  // namespace goblin::lab
