// Commits changes in groups.
#include "labcli/store/writer.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"

namespace goblin::lab {

namespace {

constexpr size_t longest_queue = 1 << 16;
constexpr size_t largest_group = 1 << 12;

}  // namespace

Writer::Writer(Database& database, std::function<void(const std::string&)> fatal)
    : database_(database), fatal_(std::move(fatal)), thread_([this] { run(); }) {}

Writer::~Writer() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    arrived_.notify_one();
    thread_.join();
}

void Writer::change(Change change) {
    enqueue({std::move(change), {}, {}});
}
void Writer::sync_first(std::shared_ptr<Syncable> file) {
    enqueue({{}, {}, std::move(file)});
}
void Writer::after_commit(std::function<void()> done) {
    enqueue({{}, std::move(done), {}});
}

void Writer::enqueue(Item item) {
    {
        std::unique_lock lock(mutex_);
        taken_.wait(lock, [&] { return queue_.size() < longest_queue; });
        queue_.push_back(std::move(item));
    }
    arrived_.notify_one();
}

void Writer::run() {
    bool failed = false;
    while (true) {
        std::deque<Item> group;
        {
            std::unique_lock lock(mutex_);
            arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (queue_.empty()) return;
            const auto count = static_cast<ptrdiff_t>(std::min(queue_.size(), largest_group));
            std::move(queue_.begin(), queue_.begin() + count, std::back_inserter(group));
            queue_.erase(queue_.begin(), queue_.begin() + count);
        }
        taken_.notify_all();
        if (!failed) failed = !keep(group);
    }
}

void Writer::commit(std::deque<Item>& group) {
    std::set<std::shared_ptr<Syncable>> files;
    for (const Item& item : group)
        if (item.file) files.insert(item.file);
    for (const auto& file : files) file->sync();
    if (std::none_of(group.begin(), group.end(), [](const Item& item) { return bool(item.change); })) return;
    Transaction transaction(database_);
    for (Item& item : group)
        if (item.change) item.change(database_);
    transaction.commit();
}

void Writer::acknowledge(std::deque<Item>& group) {
    for (Item& item : group)
        if (item.done) item.done();
}

bool Writer::keep(std::deque<Item>& group) noexcept {
    try {
        commit(group);
        acknowledge(group);
        return true;
    } catch (const std::exception& error) {
        try {
            fatal_(error.what());
        } catch (const std::exception&) {
            // Nobody is left to be told.
        }
    }
    return false;
}

}  // namespace goblin::lab
