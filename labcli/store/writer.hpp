// Writer: the one thread that changes the database. Changes are committed in groups; what depends on a change
// being on disk waits for the group's commit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "labcli/records/syncable.hpp"
#include "labcli/store/database.hpp"

namespace goblin::lab {

class Writer {
  public:
    using Change = std::function<void(Database&)>;
    // `fatal` is called once, on the writer's thread, when a group could not be committed or acknowledged:
    // nothing more will be. What it throws is ignored.
    Writer(Database& database, std::function<void(const std::string& reason)> fatal);
    // Commits what is queued, then stops.
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // In order. Waits while the queue is full.
    void change(Change change);
    // `file` is synced before the commit of the group that the next change is in.
    void sync_first(std::shared_ptr<Syncable> file);
    // Called on the writer's thread once everything queued before is on disk.
    void after_commit(std::function<void()> done);

  private:
    struct Item {
        Change change;               // or
        std::function<void()> done;  // or
        std::shared_ptr<Syncable> file;
    };
    void enqueue(Item item);
    void run();
    // These throw what went wrong.
    void commit(std::deque<Item>& group);
    void acknowledge(std::deque<Item>& group);
    // False, and `fatal` was told, when one of them did.
    bool keep(std::deque<Item>& group) noexcept;

    Database& database_;
    std::function<void(const std::string&)> fatal_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::condition_variable taken_;
    std::deque<Item> queue_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace goblin::lab
