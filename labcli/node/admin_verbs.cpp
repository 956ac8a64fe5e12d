// Finds the verb and checks its arguments.
#include "labcli/node/admin_verbs.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "labcli/node/invite_verbs.hpp"
#include "labcli/node/job_verbs.hpp"
#include "labcli/node/node_verbs.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

struct Verb {
    std::string_view name;
    json (*run)(LabNode& node, const json& arguments);
};

constexpr Verb verbs[] = {
    {"invite.create", invite_create}, {"invite.list", invite_list},   {"invite.revoke", invite_revoke},
    {"job.delete", job_delete},       {"job.list", job_list},         {"job.logs", job_logs},
    {"job.plan", job_plan},           {"job.status", job_status},     {"job.stop", job_stop},
    {"job.submit", job_submit},       {"node.approve", node_approve}, {"node.ban", node_ban},
    {"node.forget", node_forget},     {"node.list", node_list},       {"node.show", node_show},
};

}  // namespace

json administer(LabNode& node, std::string_view verb, const json& arguments) {
    for (const Verb& row : verbs) {
        if (row.name != verb) continue;
        try {
            return row.run(node, arguments);
        } catch (const json::exception& error) {
            throw Error(ErrorKind::usage, "{}: expected other arguments, found: {}", verb, error.what());
        }
    }
    throw Error(ErrorKind::usage, "expected a verb of this lab node, found '{}'; update goblin-lab", verb);
}

}  // namespace goblin::lab
