// goblin-lab renew-key: gives the lab a new key, signed by the old one.
#include "core/work/limits.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/node/lab_directory.hpp"

namespace goblin::lab {

void add_renew_key(CLI::App& app, Session& session) {
    CLI::App* const command = add_command(
        app, "renew-key", "gives the lab a new key, signed by the old one, while its lab node is stopped",
        "  goblin-lab renew-key                    the lab in ./goblin-lab; then: goblin-lab serve\n"
        "  goblin-lab --dir /srv/lab renew-key --json\n\n"
        "Contributors follow by themselves when they next connect, and links made before go on working.\n"
        "Whoever has the old key can pose as the lab to contributors that have not connected since, and "
        "keep\n"
        "them. Where that can't be borne, make a new lab: goblin-lab init DIR.\n");
    command->callback([&session] {
        const LabDirectory lab(session.lab_directory());
        const DirectoryLock lock(lab);
        const std::string before = lab.certificate().key.hex();
        const LabCertificate renewed = lab.renew_key();
        const uint64_t left = limits::lab_keys - renewed.keys;
        session.print(
            {{"directory", lab.path().string()},
             {"key", renewed.key.hex()},
             {"key_before", before},
             {"changes_left", left}},
            fmt::format(
                "the lab's key is {}, signed by {}, which is deleted here; it can be changed {} times more\n"
                "contributors follow when they connect; links made before go on working\n"
                "whoever has the old key can pose as the lab to contributors that have not connected since: "
                "delete its backups\n"
                "next: goblin-lab --dir {} serve",
                renewed.key.hex().substr(0, 16), before.substr(0, 16), left, lab.path().string()));
    });
}

}  // namespace goblin::lab
