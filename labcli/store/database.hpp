// Database: one SQLite connection and its statements, with errors as exceptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace goblin::lab {

// A prepared statement being filled and stepped through. Reset when it goes out of scope.
class Statement {
  public:
    Statement(sqlite3* connection, sqlite3_stmt* prepared) : connection_(connection), prepared_(prepared) {}
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    // Values go to ?1, ?2, … in the order of the calls.
    Statement& bind(int64_t value);
    Statement& bind(uint64_t value) { return bind(static_cast<int64_t>(value)); }
    Statement& bind(double value);
    Statement& bind(std::string_view text);
    Statement& bind(std::span<const uint8_t> blob);

    // True while there is a row. Throws ErrorKind::io with SQLite's reason.
    bool step();
    // For statements that return nothing.
    void run();

    // Columns count from 0.
    int64_t integer(int column) const;
    uint64_t natural(int column) const { return static_cast<uint64_t>(integer(column)); }
    double real(int column) const;
    std::string text(int column) const;
    std::vector<uint8_t> blob(int column) const;

  private:
    void expect(int code) const;

    sqlite3* connection_;
    sqlite3_stmt* prepared_;
    int bound_ = 0;
};

class Database {
  public:
    // Told once for each wait that takes more than a moment, on the thread that waits. What it throws is
    // ignored: the wait goes on.
    using Waiting = std::function<void(const std::string& reason)>;

    // Opens or creates the file, in WAL mode with synchronous FULL. Waits up to a minute for a program that
    // holds it locked; then throws ErrorKind::io saying so.
    explicit Database(const std::filesystem::path& path, Waiting waiting = {});
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // Prepared once, then reused.
    Statement statement(const char* sql);
    void execute(const char* sql);

  private:
    struct Close {
        void operator()(sqlite3* connection) const;
    };
    static int wait_for_lock(void* database, int tries) noexcept;
    void tell_of_waiting() noexcept;

    Waiting waiting_;
    std::chrono::steady_clock::time_point waiting_since_;
    bool told_of_waiting_ = false;
    std::unique_ptr<sqlite3, Close> connection_;
    std::unordered_map<const char*, sqlite3_stmt*> prepared_;  // keyed by the literal's address
};

// BEGIN IMMEDIATE … COMMIT; rolls back when it goes out of scope uncommitted.
class Transaction {
  public:
    explicit Transaction(Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

  private:
    Database& database_;
    bool open_ = true;
};

}  // namespace goblin::lab
