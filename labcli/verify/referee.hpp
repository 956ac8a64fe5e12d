// Referee: settles a dispute about numbers by computing one element, or everything, exactly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "labcli/jobs/plan.hpp"
#include "labcli/records/records.hpp"

namespace goblin::lab {

// Where two results of one task first differ.
struct Difference {
    size_t output = 0;
    int64_t element = 0;  // row-major
};
std::optional<Difference> first_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

// The bytes of one element.
std::vector<std::byte> element_bytes(const std::vector<Tensor>& outputs, const Difference& place);
// "element [3, 5]: expected 3f800000, found 3f800001"
std::string describe_difference(const std::vector<Tensor>& found, const Difference& place,
                                const std::vector<std::byte>& expected);

// One element of a task that is a product, by the contract's chain.
std::vector<std::byte> exact_product_element(const Plan& plan, TaskNumber task, const Difference& place);

}  // namespace goblin::lab
