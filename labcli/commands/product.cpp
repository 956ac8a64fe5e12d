// goblin-lab product: computes a matrix product on contributors.
#include "core/work/cbor.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"
#include "labcli/commands/watch.hpp"
#include "labcli/jobs/product/product_job.hpp"
#include "labcli/records/policy.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

std::string plan_text(const json& plan) {
    return fmt::format(
        "{}: {} of at most {} and {} of memory, {} altogether; {} to contributors, {} back\nverify {}: "
        "{}",
        plan["plan"].get<std::string>(), count_text(plan["tasks"].get<uint64_t>(), "task"),
        flops_text(plan["flops_per_task"].get<double>()),
        size_text(plan["memory_per_task_bytes"].get<uint64_t>()), flops_text(plan["flops"].get<double>()),
        size_text(plan["bytes_down"].get<uint64_t>()), size_text(plan["bytes_up"].get<uint64_t>()),
        plan["verify"].get<std::string>(), plan["promise"].get<std::string>());
}

}  // namespace

void add_product(CLI::App& app, Session& session) {
    struct Options {
        std::string a, b, output, tile, timeout;
        std::string verify{name_of(PolicyChoice().policy)};
        uint64_t replicas = default_replicas;
        std::optional<double> max_wrong;
        bool overwrite = false, dry_run = false, detach = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* const command =
        add_command(app, "product", "computes A·B on contributors, verified, into a .npy file",
                    "  goblin-lab product A.npy B.npy -o C.npy\n"
                    "  goblin-lab product A.npy B.npy -o C.npy --verify redundant --replicas 3\n"
                    "  goblin-lab product A.npy B.npy -o C.npy --dry-run\n"
                    "Ctrl-C detaches: the job goes on, `goblin-lab job watch ID` returns to it.\n\n"
                    "WARNING: contributors see the numbers they compute with. They get no file names and no "
                    "description, but an array\n"
                    "of pixels can still be shown as a picture. Confidential data (personal, medical) does "
                    "not belong on an open grid.\n");
    command->add_option("A", options->a, "left matrix, .npy of f32, f64, i32, i64, i8 or u8")->required();
    command->add_option("B", options->b, "right matrix, of the same type")->required();
    command
        ->add_option("-o,--output", options->output,
                     "where the product goes, .npy; it has that name only when it is complete")
        ->required();
    std::vector<std::string_view> policies;
    std::string what_policies_do;
    for (const PolicyInfo& policy : all_policies()) {
        policies.push_back(policy.name);
        what_policies_do +=
            fmt::format("{}{}: {}", policies.size() > 1 ? "\n" : "", policy.name, policy.summary);
    }
    command->add_option("--verify", options->verify, what_policies_do)
        ->check(one_of(policies))
        ->capture_default_str();
    CLI::Option* const replicas =
        command
            ->add_option("--replicas", options->replicas,
                         "volunteers for each task with --verify redundant, or where auto becomes that")
            ->check(whole_number(2, largest_replicas))
            ->capture_default_str();
    command
        ->add_option("--max-wrong", options->max_wrong,
                     "refuse a policy that accepts a wrong result with a higher probability")
        ->check(probability);
    command->add_option("--tile", options->tile,
                        "ROWSxCOLUMNS of a task (else chosen by the contributors at hand)");
    command->add_option("--timeout", options->timeout, "detach after so long, for example 10m")
        ->check(value_of(positive_duration_ms));
    command->add_flag("--overwrite", options->overwrite, "replace the output if it exists");
    command->add_flag("--dry-run", options->dry_run,
                      "print the plan: tasks, flops, bytes, memory per task; submit nothing");
    command->add_flag("--detach", options->detach, "submit and return at once");
    command->callback([options, replicas, &session] {
        if (*replicas && find_policy(*policy_from_name(options->verify))->replicas == Replicas::one)
            throw Error(
                ErrorKind::usage,
                "expected --replicas with --verify redundant or auto, found it with --verify {}, which "
                "takes one volunteer for each task; use one of those, or leave it out",
                options->verify);
        const auto absolute = [](const std::string& path) {
            if (!is_utf8(path))
                throw Error(ErrorKind::usage,
                            "expected a file name in UTF-8, found '{}'; choose another name",
                            plain_text(path));
            if (path.empty())
                throw Error(ErrorKind::usage,
                            "expected the name of a file, found an empty one; give its path, for example "
                            "C.npy");
            return std::filesystem::absolute(path).lexically_normal().string();
        };
        json arguments = {{"kind", product_kind},
                          {"arguments",
                           {{"a", absolute(options->a)},
                            {"b", absolute(options->b)},
                            {"output", absolute(options->output)},
                            {"overwrite", options->overwrite},
                            {"tile", options->tile}}},
                          {"verify", options->verify},
                          {"replicas", options->replicas}};
        if (options->max_wrong) arguments["max_wrong"] = *options->max_wrong;
        const uint64_t timeout_ms = options->timeout.empty() ? 0 : positive_duration_ms(options->timeout);
        if (options->dry_run) {
            const json plan = session.ask("job.plan", arguments);
            session.print(plan, plan_text(plan));
            return;
        }
        const json submitted = session.ask("job.submit", arguments);
        const auto id = submitted["id"].get<uint64_t>();
        session.note(fmt::format("job {}: {}", id, plan_text(submitted)));
        session.note("contributors see the numbers: confidential data does not belong on an open grid");
        if (options->detach) {
            session.note(fmt::format("detached; job {} goes on. Follow it with: {}", id,
                                     session.command(fmt::format("job watch {}", id))));
            session.print(submitted, fmt::format("job {}", id));
            session.exit_code = exit_detached;
            return;
        }
        session.exit_code = watch_job(session, id, timeout_ms);
    });
}

}  // namespace goblin::lab
