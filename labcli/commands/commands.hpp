// The commands of goblin-lab: one file each, one row each in main's table.
#pragma once

#include "labcli/commands/session.hpp"

namespace goblin::lab {

void add_init(CLI::App& app, Session& session);
void add_serve(CLI::App& app, Session& session);
void add_renew_key(CLI::App& app, Session& session);
void add_invite(CLI::App& app, Session& session);
void add_product(CLI::App& app, Session& session);
void add_job(CLI::App& app, Session& session);
void add_node(CLI::App& app, Session& session);

}  // namespace goblin::lab
