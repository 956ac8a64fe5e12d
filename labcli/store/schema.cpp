// The lab's tables. A change is a new step at the end; old steps never change.
#include "labcli/store/schema.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

// Times are milliseconds since 1970 for people to read; no decision depends on them but an invitation's
// expiry.
constexpr std::array steps = {
    R"(
CREATE TABLE invitation(
  id INTEGER PRIMARY KEY, token_hash BLOB NOT NULL UNIQUE, uses_left INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  trusted INTEGER NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE volunteer(
  id INTEGER PRIMARY KEY, public_key BLOB NOT NULL UNIQUE, invitation INTEGER NOT NULL, trusted INTEGER NOT NULL,
  state INTEGER NOT NULL, agreed INTEGER NOT NULL DEFAULT 0, disagreed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0, credit_flops INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE computer(
  id INTEGER PRIMARY KEY, volunteer INTEGER NOT NULL REFERENCES volunteer(id) DEFERRABLE INITIALLY DEFERRED, mark BLOB NOT NULL, name TEXT NOT NULL,
  credential_hash BLOB NOT NULL UNIQUE, state INTEGER NOT NULL, speed_flops INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL, UNIQUE(volunteer, mark)) STRICT;
CREATE TABLE job(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, spec TEXT NOT NULL, policy INTEGER NOT NULL, resolved INTEGER NOT NULL,
  replicas INTEGER NOT NULL,
  tasks INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '', report TEXT NOT NULL DEFAULT '',
  rows_checked INTEGER NOT NULL, rows_recomputed INTEGER NOT NULL, delta REAL NOT NULL, disputes INTEGER NOT NULL,
  computed_by_lab INTEGER NOT NULL,
  created_at INTEGER NOT NULL, ended_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE accepted(job INTEGER NOT NULL, task INTEGER NOT NULL, PRIMARY KEY(job, task)) STRICT, WITHOUT ROWID;
CREATE TABLE assignment(
  id INTEGER PRIMARY KEY, secret_id BLOB NOT NULL, key BLOB NOT NULL, job INTEGER NOT NULL, task INTEGER NOT NULL,
  computer INTEGER NOT NULL, state INTEGER NOT NULL, duration_ms INTEGER NOT NULL, digests BLOB NOT NULL DEFAULT x'',
  compute_us INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', issued_at INTEGER NOT NULL,
  committed_at INTEGER NOT NULL DEFAULT 0, ended_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX assignment_of_job ON assignment(job);
CREATE TABLE event(
  id INTEGER PRIMARY KEY, job INTEGER NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX event_of_job ON event(job);
)",
    // The few that `node show` tells about: disagreed and failed.
    R"(
CREATE INDEX assignment_blamed ON assignment(computer) WHERE state IN (4,7);
)",
    // One row: the highest numbers that what was deleted had. Rows of what was deleted before this step may
    // still be named by others.
    R"(
CREATE TABLE last_number(computer INTEGER NOT NULL, job INTEGER NOT NULL, assignment INTEGER NOT NULL) STRICT;
INSERT INTO last_number SELECT
  coalesce((SELECT max(computer) FROM assignment),0), coalesce((SELECT max(job) FROM assignment),0), 0;
)",
};

}  // namespace

void migrate(Database& database) {
    int64_t version = 0;
    {
        Statement query = database.statement("PRAGMA user_version");
        if (query.step()) version = query.integer(0);
    }
    const auto newest = static_cast<int64_t>(steps.size());
    if (version > newest)
        throw Error(ErrorKind::io,
                    "expected a lab's database up to version {}, found version {}; update goblin-lab", newest,
                    version);
    if (version == newest) return;
    Transaction transaction(database);
    for (auto step = static_cast<size_t>(version); step < steps.size(); ++step) database.execute(steps[step]);
    database.execute(fmt::format("PRAGMA user_version={}", newest).c_str());
    transaction.commit();
}

}  // namespace goblin::lab
