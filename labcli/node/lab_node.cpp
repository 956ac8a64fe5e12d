// Brings contributors' requests onto the lab's thread and answers back.
#include "labcli/node/lab_node.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "core/work/leaf_stream.hpp"
#include "labcli/node/answer_once.hpp"
#include "labcli/node/stored_job.hpp"

namespace goblin::lab {

namespace {

uint64_t steady_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

uint64_t wall_clock_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// Uniform by rejection.
uint64_t secret_draw(uint64_t bound) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    while (true) {
        const auto bytes = random_bytes<FixedBytes<8>>();
        uint64_t value = 0;
        for (const uint8_t byte : bytes) value = value << 8 | byte;
        if (value < limit) return value % bound;
    }
}

Refusal refuse(int status, std::string code, std::string message, uint64_t retry_after_ms = 0) {
    return {status, {std::move(code), std::move(message)}, retry_after_ms};
}

Refusal too_busy() {
    return refuse(503, "busy", "the lab node has too many requests at hand; try again in a moment", 1'000);
}

// Several parts may find that they can't go on, at once.
NodeSettings with_fatal_once(NodeSettings settings) {
    auto told = std::make_shared<std::atomic<bool>>(false);
    settings.fatal = [told, fatal = std::move(settings.fatal)](const std::string& reason) {
        if (!told->exchange(true)) fatal(reason);
    };
    return settings;
}

// A slice of the researcher's files, cut out leaf by leaf.
class SliceSource final : public BlobSource {
  public:
    explicit SliceSource(ExchangeDesk::BlobPlace place)
        : place_(std::move(place)), size_bytes_(place_.plan->slice_spec(place_.slice).size_bytes()) {}

    uint64_t size_bytes() const override { return size_bytes_; }
    void read_leaf(uint64_t index, std::span<std::byte> bytes) override {
        place_.plan->read_slice(place_.slice, index * leaf_size_bytes, bytes);
    }

  private:
    ExchangeDesk::BlobPlace place_;
    uint64_t size_bytes_;
};

}  // namespace

LabNode::LabNode(LabDirectory& directory, const LabCertificate& certificate, NodeSettings settings)
    : directory_(directory),
      certificate_(certificate),
      settings_of_lab_(directory.settings()),
      settings_(with_fatal_once(std::move(settings))),
      environment_{secret_draw, steady_ms, wall_clock_ms},
      nonce_secret_(random_bytes<SecretKey>()),
      store_(directory.database(), settings_.fatal,
             [log = settings_.log](const std::string& reason) { log(LogLevel::warning, reason); }),
      exchange_turns_([this](ExchangeTurns::Turn turn) { return thread_.offer(std::move(turn)); },
                      [this](ExchangeTurns::Turn turn) { thread_.post(std::move(turn)); }),
      contributors_({certificate.key, nonce_secret_, settings_of_lab_.approve_by_hand}, store_),
      book_(
          environment_, contributors_, store_,
          [this](AssignmentNumber number) { return store_.assignment(number); },
          store_.last_numbers().assignment + 1),
      workshop_(thread_, settings_.threads != 0 ? settings_.threads
                                                : std::max(1u, std::thread::hardware_concurrency())),
      board_(environment_, contributors_, book_, store_, workshop_, [this] { news_ = true; }),
      dispatcher_({settings_of_lab_.spread_over_networks}, environment_, contributors_, book_, board_),
      desk_(environment_, contributors_, book_, board_, dispatcher_, store_),
      uploads_(settings_.upload_budget_bytes, [this](uint64_t bytes) { board_.make_room(bytes); }) {
    const LastNumbers last = store_.last_numbers();
    contributors_.load(store_.invitations(), store_.volunteers(), store_.computers(), last.computer);
    board_.start_after(last.job);
    LabThread::Hooks hooks;
    hooks.tick = [this] { tick(); };
    hooks.end_turn = [this] {
        if (std::exchange(news_, false)) desk_.serve_waiting();
        store_.end_turn();
    };
    hooks.drop_turn = [this] { return store_.drop_turn(); };
    hooks.broken = [this](const std::string& what) {
        settings_.log(LogLevel::error, "a fault in the lab node itself, please report it: " + what +
                                           "; what it was about is not done, all else goes on");
    };
    // What is on disk is right, and what a start goes on from.
    hooks.diverged = [this](const std::string& what) {
        settings_.fatal("expected a change to be made whole, found it failing half way: " + what);
    };
    thread_.start(std::move(hooks));
    thread_.call([this] { take_up_jobs(); });
    thread_.wait_until([this] { return !board_.restoring(); });
}

void LabNode::stop() {
    thread_.post([this] { desk_.release_waiting(); });
    thread_.stop();
    exchange_turns_.close();
}

void LabNode::take_up_jobs() {
    for (JobRecord& job : store_.jobs()) {
        if (is_over(job.state))
            board_.add_ended(std::move(job));
        else
            take_up(std::move(job));
    }
}

// What can't be read of one job is the end of that job alone.
void LabNode::take_up(JobRecord job) {
    const JobId id = job.id;
    JobBoard::Past past;
    std::shared_ptr<Plan> plan;
    std::string reason;
    try {
        past = {store_.accepted_tasks(id), store_.open_assignments(id), store_.agreed_results(id)};
        plan = open_stored(job, past);
    } catch (const std::exception& error) {
        reason = fmt::format("job {}: {}", id, error.what());
    }
    if (plan) {
        settings_.log(LogLevel::info, fmt::format("job {}: taken up where it was left", id));
        board_.add(std::move(job), std::move(plan), std::move(past));
        return;
    }
    settings_.log(LogLevel::error, reason);
    discard_stored(job);
    PlanSummary summary = summary_of_stored(job);
    std::erase_if(past.accepted, [&](TaskNumber task) { return task >= summary.tasks; });
    board_.add_broken(std::move(job), std::move(summary), std::move(past), std::move(reason));
}

void LabNode::tick() {
    desk_.expire();
    board_.tick();
    watch_disk();
    uploads_.sweep([this](const AssignmentId& id) { return book_.find(id) != nullptr; },
                   environment_.now_ms());
    desk_.serve_waiting();
}

void LabNode::watch_disk() {
    const uint64_t now_ms = environment_.now_ms();
    if (now_ms - last_disk_look_ms_ < 2'000) return;
    last_disk_look_ms_ = now_ms;
    struct statvfs disk {};
    if (statvfs(directory_.path().c_str(), &disk) != 0) return;
    const uint64_t free_bytes = disk.f_bavail * disk.f_frsize;
    const uint64_t floor_bytes = std::min(
        limits::free_disk_floor_bytes, disk.f_blocks * disk.f_frsize / 100 * limits::free_disk_floor_percent);
    const bool held_back = !board_.held_back().empty();
    std::string reason;
    if (free_bytes < floor_bytes)
        reason = fmt::format("waiting for disk space at the lab: {} MiB are free, {} MiB are the floor",
                             free_bytes >> 20, floor_bytes >> 20);
    if (!reason.empty() && !held_back) settings_.log(LogLevel::warning, reason + "; nothing is handed out");
    if (reason.empty() && held_back)
        settings_.log(LogLevel::info, "there is disk space again: tasks are handed out");
    board_.hold_back(std::move(reason));
}

std::variant<LiveComputer*, Refusal> LabNode::authenticate(const Caller& caller) {
    LiveComputer* const computer = contributors_.by_credential(caller.credential);
    if (computer == nullptr)
        return refuse(401, "credential",
                      "expected the credential of a computer of this lab, found another; join again with a "
                      "new invitation");
    const std::string reason = contributors_.why_not(*computer);
    if (reason.empty()) return computer;
    const bool banned = contributors_.volunteer(computer->record.volunteer).state == MemberState::banned ||
                        computer->record.state == MemberState::banned;
    return refuse(403, banned ? "banned" : "pending", reason);
}

LabInfo LabNode::info() {
    LabInfo info;
    info.name = settings_of_lab_.name;
    info.computes = settings_of_lab_.computes;
    info.contact = settings_of_lab_.contact;
    info.key = certificate_.key.bytes;
    info.nonce = Contributors::fresh_nonce(nonce_secret_, environment_.now_ms());
    return info;
}

template <typename Reply, typename Turn>
void LabNode::answer(Done<Reply> done, Turn turn) {
    Done<Reply> owed = answered_once<Reply>(std::move(done));
    if (!thread_.offer([turn = std::move(turn), owed] { turn(owed); })) owed(too_busy());
}

template <typename Reply, typename Turn>
void LabNode::answer_member(const Caller& caller, Done<Reply> done, Turn turn) {
    answer<Reply>(std::move(done), [this, caller, turn = std::move(turn)](const Done<Reply>& owed) {
        auto found = authenticate(caller);
        if (auto* const refusal = std::get_if<Refusal>(&found))
            owed(std::move(*refusal));
        else
            turn(*std::get<LiveComputer*>(found), owed);
    });
}

void LabNode::enrol(const Peer& peer, EnrolRequest request, Done<EnrolReply> done) {
    answer<EnrolReply>(std::move(done), [this, peer, request = std::move(request)](const auto& owed) {
        auto answer = std::make_shared<Answer<EnrolReply>>(
            contributors_.enrol(peer, request, environment_.now_ms(), environment_.wall_ms()));
        if (std::holds_alternative<EnrolReply>(*answer))
            settings_.log(LogLevel::info, fmt::format("enrolled a computer from {}", escaped(peer.address)));
        store_.after_commit([answer, owed] { owed(std::move(*answer)); });
    });
}

void LabNode::exchange(const Caller& caller, ExchangeRequest request, Done<ExchangeReply> done) {
    Done<ExchangeReply> owed = answered_once<ExchangeReply>(std::move(done));
    auto turn = [this, caller, request = std::make_shared<ExchangeRequest>(std::move(request)), owed] {
        auto found = authenticate(caller);
        if (auto* const refusal = std::get_if<Refusal>(&found)) {
            owed(std::move(*refusal));
            return;
        }
        desk_.exchange(*std::get<LiveComputer*>(found), caller.peer, std::move(*request), owed);
    };
    switch (exchange_turns_.enter(sha256(caller.credential), std::move(turn))) {
        case ExchangeTurns::Entry::taken:
            break;
        case ExchangeTurns::Entry::too_many_of_one:
            owed(refuse(503, "busy",
                        fmt::format("expected at most {} exchanges of one computer at once, found another; "
                                    "wait for the answers",
                                    ExchangeTurns::most_at_once),
                        1'000));
            break;
        case ExchangeTurns::Entry::too_many:
            owed(too_busy());
            break;
    }
}

void LabNode::open_blob(const Caller& caller, const Digest& digest, Done<std::shared_ptr<BlobSource>> done) {
    using Reply = std::shared_ptr<BlobSource>;
    answer_member<Reply>(
        caller, std::move(done), [this, digest](const LiveComputer& computer, const Done<Reply>& owed) {
            auto place = desk_.find_blob(computer, digest);
            if (!place)
                return owed(
                    refuse(404, "blob",
                           "expected an input of an open assignment of this computer, found another digest"));
            owed(Reply(std::make_shared<SliceSource>(*std::move(place))));
        });
}

void LabNode::open_upload(const Caller& caller, const Digest& digest, Done<std::shared_ptr<BlobSink>> done) {
    using Reply = std::shared_ptr<BlobSink>;
    answer_member<Reply>(
        caller, std::move(done), [this, digest](const LiveComputer& computer, const Done<Reply>& owed) {
            const auto place = desk_.find_upload(computer, digest);
            if (!place)
                return owed(
                    refuse(404, "blob", "expected a digest that this computer committed to, found another"));
            if (place->complete)
                return owed(refuse(409, "complete",
                                   "expected an upload that is still needed, found one that is complete"));
            if (!place->asked)
                return owed(refuse(403, "unasked",
                                   "expected to be asked before numbers are sent; wait for the lab to ask"));
            auto upload = uploads_.open(computer.record.id, digest, *place, environment_.now_ms());
            if (!upload)
                return owed(refuse(
                    503, "busy", "the lab node has too many uploads at hand; try again in a moment", 1'000));
            owed(Reply(std::move(upload)));
        });
}

void LabNode::finish_upload(const Caller& caller, const Digest& digest, std::shared_ptr<BlobSink> sink,
                            Done<Nothing> done) {
    answer_member<Nothing>(
        caller, std::move(done),
        [this, digest, sink = std::move(sink)](const LiveComputer& computer, const Done<Nothing>& owed) {
            auto& upload = static_cast<Upload&>(*sink);
            std::optional<ArrivedOutput> output = upload.take();
            if (!output)
                return owed(refuse(
                    409, "leaf", "expected an upload under way, found one that is over; ask how far it is"));
            uploads_.close(computer.record.id, digest);
            const std::string reason = desk_.take_upload(computer, upload.place(), *std::move(output));
            if (!reason.empty()) return owed(refuse(409, "complete", reason));
            owed(Nothing{});
        });
}

}  // namespace goblin::lab
