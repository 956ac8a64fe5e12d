// goblin-lab invite: links for contributors.
#include <unistd.h>

#include "core/work/link.hpp"
#include "core/work/quantity.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t most_uses = 1'000'000;

std::string this_host() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

std::string line_of(const nlohmann::json& invitation) {
    return fmt::format("{:>4}  {:>8} uses left  from {} until {}{}{}", invitation["id"].get<uint64_t>(),
                       invitation["uses_left"].get<uint64_t>(),
                       time_text(invitation["created_at_ms"].get<uint64_t>()),
                       time_text(invitation["expires_at_ms"].get<uint64_t>()),
                       invitation["trusted"].get<bool>() ? "  trusted" : "",
                       invitation["revoked"].get<bool>() ? "  revoked" : "");
}

}  // namespace

void add_invite(CLI::App& app, Session& session) {
    struct Options {
        uint64_t uses = 1;
        std::string expires = "7d";
        std::string host;
        bool trusted = false;
        uint64_t id = 0;
    };
    auto options = std::make_shared<Options>();
    CLI::App* const command =
        add_command(app, "invite", "prints an invitation link; list and revoke show and end invitations",
                    "  goblin-lab invite\n"
                    "  goblin-lab invite --uses 30 --expires 2d --host lab.example.org:7410\n"
                    "  goblin-lab invite list\n"
                    "  goblin-lab invite revoke 3\n"
                    "A contributor then runs: goblin-worker --join 'goblin://…'\n");
    command->add_option("--uses", options->uses, "how many computers may join with it")
        ->check(whole_number(1, most_uses))
        ->capture_default_str();
    command->add_option("--expires", options->expires, "how long it is valid, for example 12h or 7d")
        ->check(value_of(positive_duration_ms))
        ->capture_default_str();
    command
        ->add_option("--host", options->host,
                     "NAME[:PORT] by which contributors reach this lab (else this machine's name)")
        ->check(value_of([](const std::string& text) { HostPort::parse(text, default_port); }));
    command->add_flag("--trusted", options->trusted,
                      "for machines of the lab's own: their word counts like the lab's");
    CLI::App* const list =
        add_command(*command, "list", "shows all invitations", "  goblin-lab invite list\n");
    CLI::App* const revoke = add_command(*command, "revoke", "ends an invitation; who joined stays",
                                         "  goblin-lab invite revoke 3\n");
    revoke->add_option("ID", options->id, "the invitation's number")
        ->required()
        ->check(whole_number(1, largest_id));
    command->require_subcommand(0, 1);
    list->callback([&session] {
        const nlohmann::json all = session.ask("invite.list", nlohmann::json::object());
        std::string text;
        for (const auto& invitation : all) text += (text.empty() ? "" : "\n") + line_of(invitation);
        session.print(all, text.empty() ? "no invitations" : text);
    });
    revoke->callback([options, &session] {
        const nlohmann::json revoked = session.ask("invite.revoke", {{"id", options->id}});
        session.print(revoked, fmt::format("invitation {} is revoked; who joined by it stays", options->id));
    });
    command->callback([options, list, revoke, &session] {
        if (*list || *revoke) return;
        const nlohmann::json invitation =
            session.ask("invite.create", {{"uses", options->uses},
                                          {"expires_ms", positive_duration_ms(options->expires)},
                                          {"trusted", options->trusted},
                                          {"host", options->host.empty() ? this_host() : options->host}});
        session.print(invitation, invitation["link"].get<std::string>());
        session.note(fmt::format("for {}, until {}; contributors run: goblin-worker --join 'LINK'",
                                 count_text(options->uses, "computer"),
                                 time_text(invitation["expires_at_ms"].get<uint64_t>())));
    });
}

}  // namespace goblin::lab
