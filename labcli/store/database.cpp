// SQLite with exceptions.
#include "labcli/store/database.hpp"

#include <sqlite3.h>

#include <cassert>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

constexpr std::chrono::seconds longest_lock_wait(60);
constexpr std::chrono::seconds told_lock_wait(2);
constexpr std::chrono::milliseconds lock_interval(10);

// Some calls of SQLite tell a full disk only as an I/O error.
bool disk_is_full(sqlite3* connection, int code) {
    if ((code & 0xff) != SQLITE_IOERR || connection == nullptr) return false;
    if (sqlite3_extended_errcode(connection) == SQLITE_IOERR_SHMSIZE) return true;
    const int reason = sqlite3_system_errno(connection);
    return reason == ENOSPC || reason == EDQUOT;
}

[[noreturn]] void refuse(sqlite3* connection, int code) {
    const char* reason = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    switch (disk_is_full(connection, code) ? SQLITE_FULL : code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            throw Error(ErrorKind::io,
                        "expected the lab's database to be free, found it locked by another program for a "
                        "minute ({}); close that "
                        "program and try again",
                        reason);
        case SQLITE_FULL:
            throw Error(ErrorKind::io,
                        "expected space for the lab's database, found the disk full ({}); free some space",
                        reason);
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            throw Error(
                ErrorKind::io,
                "expected a lab's database, found a damaged file ({}); nothing was changed, restore a copy",
                reason);
        default:
            throw Error(ErrorKind::io, "expected the lab's database to answer, found: {}", reason);
    }
}

}  // namespace

Statement::~Statement() {
    sqlite3_reset(prepared_);
    sqlite3_clear_bindings(prepared_);
}

void Statement::expect(int code) const {
    if (code != SQLITE_OK) refuse(connection_, code);
}

Statement& Statement::bind(int64_t value) {
    expect(sqlite3_bind_int64(prepared_, ++bound_, value));
    return *this;
}

Statement& Statement::bind(double value) {
    expect(sqlite3_bind_double(prepared_, ++bound_, value));
    return *this;
}

Statement& Statement::bind(std::string_view text) {
    expect(
        sqlite3_bind_text(prepared_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    return *this;
}

Statement& Statement::bind(std::span<const uint8_t> blob) {
    const void* data = blob.empty() ? static_cast<const void*>("") : blob.data();
    expect(sqlite3_bind_blob(prepared_, ++bound_, data, static_cast<int>(blob.size()), SQLITE_TRANSIENT));
    return *this;
}

bool Statement::step() {
    assert(bound_ == sqlite3_bind_parameter_count(prepared_));
    const int code = sqlite3_step(prepared_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) refuse(connection_, code);
    return false;
}

void Statement::run() {
    const bool row = step();
    assert(!row);
    (void)row;
}

int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(prepared_, column);
}

double Statement::real(int column) const {
    return sqlite3_column_double(prepared_, column);
}

std::string Statement::text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared_, column));
    return text == nullptr ? std::string()
                           : std::string(text, static_cast<size_t>(sqlite3_column_bytes(prepared_, column)));
}

std::vector<uint8_t> Statement::blob(int column) const {
    const auto* bytes = static_cast<const uint8_t*>(sqlite3_column_blob(prepared_, column));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(prepared_, column));
    return bytes == nullptr ? std::vector<uint8_t>() : std::vector<uint8_t>(bytes, bytes + size);
}

void Database::Close::operator()(sqlite3* connection) const {
    sqlite3_close(connection);
}

// SQLite, which calls the one that calls this, knows no exceptions.
void Database::tell_of_waiting() noexcept {
    if (std::exchange(told_of_waiting_, true) || !waiting_) return;
    try {
        waiting_("another program holds the lab's database locked; the lab waits for it, a minute at most");
    } catch (const std::exception&) {
        // The wait is no different for not being told of.
    }
}

int Database::wait_for_lock(void* database, int tries) noexcept {
    auto& self = *static_cast<Database*>(database);
    const auto now = std::chrono::steady_clock::now();
    if (tries == 0) {
        self.waiting_since_ = now;
        self.told_of_waiting_ = false;
    }
    const auto waited = now - self.waiting_since_;
    if (waited >= longest_lock_wait) return 0;
    if (waited >= told_lock_wait) self.tell_of_waiting();
    std::this_thread::sleep_for(lock_interval);
    return 1;
}

Database::Database(const std::filesystem::path& path, Waiting waiting) : waiting_(std::move(waiting)) {
    sqlite3* opened = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    connection_.reset(opened);
    if (code != SQLITE_OK) refuse(opened, code);
    sqlite3_busy_handler(opened, wait_for_lock, this);
    sqlite3_extended_result_codes(opened, 1);
    execute("PRAGMA journal_mode=WAL");
    execute("PRAGMA synchronous=FULL");
    execute("PRAGMA foreign_keys=ON");
    execute("PRAGMA wal_autocheckpoint=4000");
    execute("PRAGMA cache_size=-16000");
}

Database::~Database() {
    for (const auto& [sql, prepared] : prepared_) sqlite3_finalize(prepared);
}

Statement Database::statement(const char* sql) {
    sqlite3_stmt*& prepared = prepared_[sql];
    if (prepared == nullptr) {
        const int code =
            sqlite3_prepare_v3(connection_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
        if (code != SQLITE_OK) {
            prepared_.erase(sql);
            refuse(connection_.get(), code);
        }
    }
    return {connection_.get(), prepared};
}

void Database::execute(const char* sql) {
    const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) refuse(connection_.get(), code);
}

Transaction::Transaction(Database& database) : database_(database) {
    database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (!open_) return;
    try {
        database_.execute("ROLLBACK");
    } catch (const Error&) {
        // SQLite has rolled back by itself already, or will when the connection closes.
    }
}

void Transaction::commit() {
    database_.execute("COMMIT");
    open_ = false;
}

}  // namespace goblin::lab
