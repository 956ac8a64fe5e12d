// goblin-lab init: makes a lab.
#include "labcli/commands/commands.hpp"
#include "labcli/node/lab_directory.hpp"
#include "labcli/store/store.hpp"

namespace goblin::lab {

void add_init(CLI::App& app, Session& session) {
    struct Options {
        std::string directory;
        LabSettings settings;
    };
    auto options = std::make_shared<Options>();
    CLI::App* const command = add_command(
        app, "init", "makes a lab: keys, certificate, database, settings",
        "  goblin-lab init\n"
        "  goblin-lab init /srv/lab --name \"Fluid Dynamics, Dhaka\" --contact lab@example.org\n");
    command->add_option("DIR", options->directory, "where (else --dir, GOBLIN_LAB_DIR, ./goblin-lab)");
    command->add_option("--name", options->settings.name, "what contributors see");
    command->add_option("--computes", options->settings.computes, "what the lab says it computes");
    command->add_option("--contact", options->settings.contact, "whom contributors may ask");
    command->add_flag("--approve", options->settings.approve_by_hand,
                      "a person approves each new volunteer (goblin-lab node approve)");
    command->callback([options, &session] {
        if (!options->directory.empty()) session.directory = options->directory;
        const std::filesystem::path path = session.lab_directory();
        LabDirectory::create(path, options->settings);
        const LabDirectory lab(path);
        const Store database(lab.database(), [](const std::string&) {});
        session.print(
            {{"directory", path.string()}, {"key", lab.certificate().key.hex()}},
            fmt::format("made a lab in {}\nnext: goblin-lab --dir {} serve", path.string(), path.string()));
    });
}

}  // namespace goblin::lab
