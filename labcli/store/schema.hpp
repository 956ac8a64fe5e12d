// The lab's tables and the steps from each version of them to the next.
#pragma once

#include "labcli/store/database.hpp"

namespace goblin::lab {

// Brings the database to the newest version in one transaction. Throws ErrorKind::io when it is newer than
// this program.
void migrate(Database& database);

}  // namespace goblin::lab
