// goblin-lab init: makes a lab.
#include "labcli/commands/commands.hpp"
#include "labcli/node/lab_directory.hpp"
#include "labcli/store/store.hpp"

namespace goblin::lab {

namespace {

void add_setting(CLI::App& command, const SettingInfo& setting, LabSettings& settings) {
    const std::string option(setting.option);
    const std::string what(setting.what);
    if (const auto* const flag = std::get_if<bool LabSettings::*>(&setting.member))
        command.add_flag(option, settings.**flag, what);
    else
        command.add_option(option, settings.*std::get<std::string LabSettings::*>(setting.member), what);
}

}  // namespace

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
    for (const SettingInfo& setting : all_settings())
        if (!setting.option.empty()) add_setting(*command, setting, options->settings);
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
