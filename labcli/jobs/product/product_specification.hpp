// ProductSpecification: what a product's stored specification says, with nothing opened.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/tensor/file.hpp"
#include "core/tensor/npy_reader.hpp"
#include "labcli/jobs/plan.hpp"
#include "labcli/jobs/product/grid.hpp"

namespace goblin::lab {

struct ProductSpecification {
    ProductSize size;
    Grid grid;

    // Throws ErrorKind::input, and what nlohmann-json throws, for what is no specification of a product.
    explicit ProductSpecification(const nlohmann::json& stored);

    TensorSpec left_panel(uint64_t panel) const;
    TensorSpec right_panel(uint64_t panel) const;
    TensorSpec output() const;
    PlanSummary summary() const;
};

// Throws ErrorKind::input when there is no product A · B of them.
ProductSize size_of_operands(const NpyReader& a, const NpyReader& b);

nlohmann::json json_of(const FileIdentity& identity);
FileIdentity identity_of_json(const nlohmann::json& stored);

}  // namespace goblin::lab
