// The table of kinds of jobs.
#include "labcli/jobs/kinds.hpp"

#include <array>

#include "core/error.hpp"
#include "labcli/jobs/product/product_job.hpp"

namespace goblin::lab {

const JobKind& job_kind(std::string_view name) {
    static constexpr std::array table = {
        JobKind{"product", plan_product, open_product, summarize_product, discard_product},
    };
    for (const JobKind& kind : table)
        if (kind.name == name) return kind;
    throw Error(ErrorKind::usage, "expected a kind of job among: product; found '{}'", name);
}

}  // namespace goblin::lab
