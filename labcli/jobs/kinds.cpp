// The table of kinds of jobs.
#include "labcli/jobs/kinds.hpp"

#include <array>

#include "core/error.hpp"
#include "labcli/jobs/product/product_job.hpp"

namespace goblin::lab {

const JobKind& job_kind(std::string_view name) {
    static constexpr std::array table = {
        JobKind{product_kind, plan_product, open_product, summarize_product, discard_product},
    };
    for (const JobKind& kind : table)
        if (kind.name == name) return kind;
    std::string known;
    for (const JobKind& kind : table) known += (known.empty() ? "" : ", ") + std::string(kind.name);
    throw Error(ErrorKind::usage, "expected a kind of job among: {}; found '{}'", known, name);
}

}  // namespace goblin::lab
