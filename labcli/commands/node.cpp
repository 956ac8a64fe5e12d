// goblin-lab node: shows, approves, bans and forgets contributors.
#include "core/work/quantity.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"

namespace goblin::lab {

namespace {

using nlohmann::json;

std::string line_of(const json& node) {
    const std::string seen =
        node["seen_s"].is_number()
            ? fmt::format(", heard {} ago", duration_text(milliseconds_of(node["seen_s"])))
            : "";
    return fmt::format(
        "computer {} ({}), volunteer {}{}, {}, {}{}: {} agreed, {} disagreed, {} failed, {} credited",
        node["id"].get<uint64_t>(), node["name"].get<std::string>(), node["volunteer"].get<uint64_t>(),
        node["trusted"].get<bool>() ? " (trusted)" : "", node["membership"].get<std::string>(),
        node["state"].get<std::string>(), seen, node["agreed"].get<uint64_t>(),
        node["disagreed"].get<uint64_t>(), node["failed"].get<uint64_t>(),
        flops_text(node["credit_flops"].get<double>()));
}

std::string details_of(const json& node) {
    std::string text = line_of(node);
    text += fmt::format("\n  address {}, key {}", node["address"].get<std::string>(),
                        node["volunteer_key"].get<std::string>());
    text += fmt::format("\n  joined {}, its volunteer {}", time_text(node["joined_at_ms"].get<uint64_t>()),
                        time_text(node["volunteer_since_ms"].get<uint64_t>()));
    const double speed_flops = node["speed_flops"].get<double>();
    text += fmt::format("\n  speed {}, {}, quota {}",
                        speed_flops > 0 ? flops_text(speed_flops) + "/s" : "not measured yet",
                        count_text(node["open_assignments"].get<uint64_t>(), "open assignment"),
                        node["quota"].get<uint64_t>());
    for (const json& device : node["devices"])
        text +=
            fmt::format("\n  {} {}: {} of memory", device["kind"].get<std::string>(),
                        device["name"].get<std::string>(), size_text(device["memory_bytes"].get<uint64_t>()));
    for (const json& line : node["disagreements"])
        text += fmt::format("\n  {}  {}", time_text(line["at_ms"].get<uint64_t>()),
                            line["text"].get<std::string>());
    return text;
}

}  // namespace

void add_node(CLI::App& app, Session& session) {
    struct Options {
        uint64_t id = 0;
        bool computer_only = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* const command = add_command(app, "node", "shows, approves, bans and forgets contributors",
                                          "  goblin-lab node list\n"
                                          "  goblin-lab node show 3     what it did, and where it disagreed\n"
                                          "  goblin-lab node ban 3\n");
    command->require_subcommand(1);
    add_command(*command, "list", "shows all contributors' computers", "  goblin-lab node list\n")
        ->callback([&session] {
            const json all = session.ask("node.list", json::object());
            std::string text;
            for (const json& node : all) text += (text.empty() ? "" : "\n") + line_of(node);
            session.print(all, text.empty() ? "no contributors" : text);
        });
    const auto add = [&](const std::string& name, const std::string& what, auto text_of) {
        CLI::App* const verb =
            add_command(*command, name, what, fmt::format("  goblin-lab node {} 3\n", name));
        verb->add_option("ID", options->id, "the computer's number")
            ->required()
            ->check(whole_number(1, largest_id));
        verb->callback([options, &session, name, text_of] {
            const json node = session.ask(
                "node." + name,
                {{"id", options->id}, {"scope", options->computer_only ? "computer" : "volunteer"}});
            session.print(node, text_of(node));
            if (const std::string next = node.value("next", ""); !next.empty()) session.note(next);
        });
        return verb;
    };
    add("show", "tells all about one computer", details_of);
    add("approve", "lets a volunteer who waits (or was banned) compute, with all computers", line_of);
    add("ban", "bans a volunteer with all computers; open tasks go to others", line_of)
        ->add_flag("--computer", options->computer_only, "ban this computer alone");
    add("forget", "removes a computer; it must join again", [](const json& node) {
        return fmt::format("computer {} ({}) is forgotten; it must join again", node["id"].get<uint64_t>(),
                           node["name"].get<std::string>());
    });
}

}  // namespace goblin::lab
