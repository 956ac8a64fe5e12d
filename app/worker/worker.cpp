// Runs a worker from its start to its end.
#include "app/worker/worker.hpp"

#include <algorithm>
#include <climits>

#include "core/error.hpp"
#include "core/work/hex.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {

constexpr int tick_ms = 500;
constexpr int tally_interval_ms = 600'000;
constexpr int last_word_ms = 5'000;           // for telling the labs, once nothing computes any more
constexpr uint64_t stuck_engine_ms = 10'000;  // engines stop within 100 ms
constexpr std::chrono::milliseconds patience{1'000};
constexpr double speed_memory = 0.7;  // weight of the past in the measured speed

}  // namespace

Worker::Worker(WorkerDirectory& directory, WorkerSettings settings,
               std::vector<std::unique_ptr<Device>> devices, Log& log, std::function<void(int)> finished)
    : directory_(directory),
      settings_(std::move(settings)),
      log_(log),
      finished_(std::move(finished)),
      cache_(std::make_unique<BlobCache>(directory.path() / "labs", settings_.disk_bytes,
                                         [this](const BlobName& name, bool held) {
                                             if (LabSession* session = session_of(name.lab))
                                                 session->blob_changed(name.digest, held);
                                         })),
      setting_{*cache_,
               log,
               network_,
               settings_.disk_rest_ms,
               settings_.in_hand_bytes,
               {},
               [this](const Graph& graph) { return why_not(graph); },
               [this] { schedule(); },
               [this](const TaskName& task) {
                   if (const auto run = running_.find(task); run != running_.end())
                       run->second.device->cancel(task);
               },
               [this] { check_settled(); },
               [this] { return static_cast<uint64_t>(speed_flops_); },
               [this] { return sessions_.size(); }},
      devices_(std::move(devices)) {
    for (const auto& device : devices_) {
        setting_.offers.push_back(device->offer());
        speed_flops_ += static_cast<double>(device->offer().speed_flops);
    }
    network_.setObjectName("network");
    network_.start();
    alive_.start();
    tally_told_at_.start();
    idle_.start();
    open_labs();
    if (sessions_.empty() && enrolments_.empty()) {
        network_.quit();
        network_.wait();
        throw Error(ErrorKind::usage,
                    "expected a lab to work for, found none in {}; join one: goblin-worker --join LINK",
                    directory_.path().string());
    }
    connect(&tick_, &QTimer::timeout, this, &Worker::tick);
    tick_.start(tick_ms);
    finish_.setSingleShot(true);
    connect(&finish_, &QTimer::timeout, this, [this] {
        for (const auto& session : sessions_) session->halt();
        last_word_.start(last_word_ms);
        check_settled();
    });
    last_word_.setSingleShot(true);
    connect(&last_word_, &QTimer::timeout, this, [this] {
        log_.warning(
            "a lab could not be told everything; it will be at the next start, or after its deadline");
        leave(0);
    });
}

Worker::~Worker() {
    devices_.clear();
    sessions_.clear();
    enrolments_.clear();
    network_.quit();
    network_.wait();
}

void Worker::open_labs() {
    const std::vector<LabMemory> labs = remembered_labs();
    for (const InvitationLink& link : settings_.links) {
        // The same command again, as service managers do: the link is used up, and what it brought is here.
        const bool joined_by_it = std::any_of(labs.begin(), labs.end(), [&](const LabMemory& known) {
            return known.record && known.record->credential && known.record->joined_by == token_mark(link);
        });
        if (!joined_by_it) join(link, lab_of(link));
    }
    for (const Digest& lab : directory_.labs())
        if (!enrolments_.contains(lab)) open_lab(lab);
}

// Those that were joined first, then those that showed a new key but were never joined. A damaged one counts
// as not remembered; open_lab() says what is wrong with it.
std::vector<Worker::LabMemory> Worker::remembered_labs() const {
    std::vector<LabMemory> labs;
    for (const Digest& lab : directory_.labs()) {
        try {
            const std::filesystem::path folder = directory_.lab_folder(lab);
            labs.push_back({lab, load_lab_keys(folder, lab), load_lab_record(folder, lab)});
        } catch (const Error&) {
        }
    }
    std::stable_partition(labs.begin(), labs.end(), [](const LabMemory& known) { return known.record; });
    return labs;
}

// The key by which the link's lab is known here: the link's own for a new one.
Digest Worker::lab_of(const InvitationLink& link) const {
    for (const LabMemory& known : remembered_labs())
        if (std::find(known.keys.begin(), known.keys.end(), link.lab_key) != known.keys.end())
            return known.lab;
    return link.lab_key;
}

void Worker::open_lab(const Digest& lab) {
    try {
        const std::filesystem::path folder = directory_.lab_folder(lab);
        const std::optional<LabRecord> record = load_lab_record(folder, lab);
        if (!record) return;
        if (record->credential) {
            sessions_.push_back(std::make_unique<LabSession>(folder, *record, setting_));
            if (paused_) sessions_.back()->pause(*paused_);
        } else
            log_.warning("the lab at {} no longer knows this computer: join again with a new link",
                         record->address.text());
    } catch (const Error& error) {
        log_.error("{}", error.what());
    }
}

void Worker::join(const InvitationLink& link, const Digest& lab) {
    Enrolment::Events events;
    events.joined = [this](const LabRecord& record, bool approved) { joined(record, approved); };
    events.refused = [this, lab](const std::string& reason) { join_refused(lab, reason); };
    events.delayed = [this, place = HostPort{link.host, link.port}.text()](const std::string& reason) {
        log_.warning("joining the lab at {}: {}; tries again", place, reason);
    };
    events.known_otherwise = [this, lab, link](const std::vector<Digest>& keys) {
        return known_otherwise(lab, link, keys);
    };
    Enrolment::Computer computer{computer_mark(directory_.seed(), lab, directory_.computer()),
                                 settings_.name};
    if (computer.name.empty()) computer.name = "computer-" + to_hex(computer.mark).substr(0, 4);
    try {
        auto enrolment =
            std::make_unique<Enrolment>(link, lab, directory_, std::move(computer), log_, std::move(events));
        enrolments_[lab] = std::move(enrolment);
    } catch (const Error& error) {
        log_.error("{}", error.what());
    }
}

// A lab whose key has changed may have been joined here by another of its keys. Joined by both, it would see
// two volunteers in one.
bool Worker::known_otherwise(const Digest& lab, const InvitationLink& link, const std::vector<Digest>& keys) {
    const std::vector<LabMemory> labs = remembered_labs();
    const auto joined_as = [&](const LabMemory& known) { return known.record && known.lab == lab; };
    if (std::any_of(labs.begin(), labs.end(), joined_as)) return false;
    const auto same = std::find_if(labs.begin(), labs.end(), [&](const LabMemory& known) {
        return known.record && std::find(keys.begin(), keys.end(), known.keys.front()) != keys.end();
    });
    if (same == labs.end()) return false;
    end_enrolment(lab);
    const std::string place = HostPort{link.host, link.port}.text();
    LabSession* const session = session_of(same->lab);
    try {
        if (!session) {
            LabPin(directory_.lab_folder(same->lab), same->lab, log_).learn(keys, place);
            join(link, same->lab);
            return true;
        }
        session->pin().learn(keys, place);
        log_.warning(
            "the lab at {} is {}, joined before by another of its keys: goes on as that; start the "
            "worker again to join anew by this link",
            place, session->shown_name());
    } catch (const Error& error) {
        log_.error("{}", error.what());
    }
    check_labs();
    return true;
}

void Worker::end_enrolment(const Digest& lab) {
    const auto enrolment = enrolments_.find(lab);
    enrolment->second.release()->deleteLater();  // we may be inside one of its handlers
    enrolments_.erase(enrolment);
}

void Worker::joined(const LabRecord& record, bool approved) {
    const Digest lab = record.address.key;
    log_.info("joined {} at {}, which says it computes: {}", plain_text(record.name), record.address.text(),
              plain_text(record.computes));
    if (!approved)
        log_.info("a person at the lab must approve this computer before it gets tasks; contact: {}",
                  plain_text(record.contact));
    end_enrolment(lab);
    try {
        save_lab_record(directory_.lab_folder(lab), record);
    } catch (const Error& error) {
        log_.error("{}", error.what());
        return check_labs();
    }
    open_lab(lab);
}

void Worker::join_refused(const Digest& lab, const std::string& reason) {
    log_.error("joining the lab at {}: {}", enrolments_.at(lab)->address_text(), reason);
    end_enrolment(lab);
    open_lab(lab);  // what an earlier link brought may still be good
    check_labs();
}

LabSession* Worker::session_of(const Digest& lab) {
    for (const auto& session : sessions_)
        if (session->record().address.key == lab) return session.get();
    return nullptr;
}

std::optional<std::string> Worker::why_not(const Graph& graph) const {
    std::optional<std::string> reason = "expected a device that computes, found none";
    for (const auto& device : devices_) {
        reason = device->why_not(graph);
        if (!reason) return std::nullopt;
    }
    return reason;
}

void Worker::schedule() {
    for (const auto& device : devices_)
        while (device->has_room() && give_task(*device)) {
        }
}

bool Worker::give_task(Device& device) {
    for (size_t i = 0; i < sessions_.size(); ++i) {
        LabSession& session = *sessions_[turn_++ % sessions_.size()];
        if (session.ended()) continue;
        std::optional<ComputeOrder> order =
            session.work().next_order([&](const Graph& graph) { return !device.why_not(graph); });
        if (!order) continue;
        const TaskName task = order->task;
        running_[task] = {&device, cost_of(order->graph).flops};
        device.submit(std::move(*order), [this, task](ComputeOutcome outcome) {
            QMetaObject::invokeMethod(
                this,
                [this, task, outcome = std::move(outcome)]() mutable {
                    compute_ended(task, std::move(outcome));
                },
                Qt::QueuedConnection);
        });
        return true;
    }
    return false;
}

void Worker::compute_ended(const TaskName& task, ComputeOutcome outcome) {
    const auto found = running_.find(task);
    const Running run = found->second;
    running_.erase(found);
    idle_.restart();
    if (outcome.kind == ComputeOutcome::Kind::computed) measured(run, outcome.computed);
    if (LabSession* session = session_of(task.lab)) session->compute_ended(task.id, std::move(outcome));
}

// Tasks of a few microseconds tell more about overhead than about speed.
void Worker::measured(const Running& run, const Computed& computed) {
    if (computed.compute_us < 1'000) return;
    const double speed = static_cast<double>(run.flops) / static_cast<double>(computed.compute_us) * 1e6;
    speed_flops_ = speed_flops_ > 0 ? speed_memory * speed_flops_ + (1 - speed_memory) * speed : speed;
}

void Worker::pause(const std::string& reason) {
    if (!paused_) log_.info("pauses, and hands back what is in hand: {}", reason);
    paused_ = reason;
    for (const auto& session : sessions_) session->pause(reason);
}

void Worker::resume() {
    if (paused_) log_.info("takes tasks again");
    paused_.reset();
    for (const auto& session : sessions_) session->resume();
}

void Worker::tick() {
    watch_devices();
    if (tally_told_at_.hasExpired(tally_interval_ms)) tell_tally();
    const bool busy =
        !running_.empty() || std::any_of(sessions_.begin(), sessions_.end(), [](const auto& session) {
            return !session->ended() && session->work().book().tasks_ahead() > 0;
        });
    if (busy) idle_.restart();
    if (settings_.max_idle_ms > 0 && idle_.hasExpired(static_cast<qint64>(settings_.max_idle_ms)) &&
        !stopping_)
        stop(fmt::format("no task for {}", duration_text(settings_.max_idle_ms)));
    if (settings_.max_lifetime_ms > 0) watch_lifetime();
}

void Worker::tell_tally() {
    Tally sum;
    for (const auto& session : sessions_) {
        const Tally& tally = session->work().tally();
        sum.computed += tally.computed;
        sum.accepted += tally.accepted;
        sum.disagreed += tally.disagreed;
        sum.failed += tally.failed;
        sum.handed_back += tally.handed_back;
    }
    tally_told_at_.restart();
    if (sum == tally_told_) return;
    tally_told_ = sum;
    log_.info("tasks so far: {} computed, {} accepted, {} disagreed with, {} failed, {} handed back",
              sum.computed, sum.accepted, sum.disagreed, sum.failed, sum.handed_back);
}

// Before the end of its life the worker takes nothing more, so that little is left to hand back.
void Worker::watch_lifetime() {
    const uint64_t lived_ms = static_cast<uint64_t>(alive_.elapsed());
    const uint64_t drain_ms = std::min<uint64_t>(settings_.max_lifetime_ms / 4, 2 * limits::task_target_ms);
    const uint64_t ending_ms =
        std::min<uint64_t>(settings_.finish_ms + last_word_ms, settings_.max_lifetime_ms / 4);
    if (!draining_ && lived_ms + drain_ms + ending_ms >= settings_.max_lifetime_ms) {
        draining_ = true;
        log_.info("takes no more tasks: its life of {} ends soon", duration_text(settings_.max_lifetime_ms));
        for (const auto& session : sessions_) session->drain();
    }
    if (!stopping_ && lived_ms + ending_ms >= settings_.max_lifetime_ms) stop("its life is over");
}

void Worker::watch_devices() {
    for (const auto& device : devices_) {
        if (device->overdue().count() < static_cast<int64_t>(stuck_engine_ms)) continue;
        log_.error(
            "the {} engine doesn't stop; the worker ends to stop it, and starts again by hand or service "
            "manager",
            device->offer().kind);
        std::_Exit(70);  // its thread can't be ended otherwise; the journal says what it was computing
    }
}

void Worker::check_labs() {
    const bool any = !enrolments_.empty() || std::any_of(sessions_.begin(), sessions_.end(),
                                                         [](const auto& s) { return !s->ended(); });
    if (any || stopping_) return;
    log_.error("no lab is left to work for");
    leave(1);
}

void Worker::stop(const std::string& reason) {
    if (stopping_) {
        log_.warning("ends at once; what is in hand is told to the labs at the next start");
        for (const auto& session : sessions_) session->work().abandon_computing();
        return leave(1);
    }
    stopping_ = true;
    log_.info("stops: {}", reason);
    enrolments_.clear();
    for (const auto& session : sessions_) session->stop();
    // Nothing stays for a next start: what the lab doesn't ask for now, it can never ask for.
    if (settings_.ephemeral)
        for (const auto& session : sessions_) session->linger();
    if (finishing())
        finish_.start(static_cast<int>(std::min<uint64_t>(settings_.finish_ms, INT_MAX)));
    else
        last_word_.start(last_word_ms);
    check_settled();
}

// Something computes, or a lab may still ask for results that will be gone.
bool Worker::finishing() const {
    return !running_.empty() || std::any_of(sessions_.begin(), sessions_.end(),
                                            [](const auto& session) { return session->lingers(); });
}

void Worker::check_settled() {
    if (!stopping_) return check_labs();
    if (finish_.isActive() && !finishing()) {
        finish_.stop();
        last_word_.start(last_word_ms);
    }
    const bool settled =
        running_.empty() && std::all_of(sessions_.begin(), sessions_.end(),
                                        [](const auto& session) { return session->settled(); });
    if (!settled) return;
    if (settings_.ephemeral && !forgot_) {
        forgot_ = true;
        for (const auto& session : sessions_) session->forget();
        return;
    }
    leave(0);
}

void Worker::leave(int code) {
    if (left_) return;
    left_ = true;
    tell_tally();
    for (QTimer* timer : {&tick_, &finish_, &last_word_}) timer->stop();
    for (const auto& device : devices_)
        if (device->overdue() > patience) std::_Exit(code);  // waiting for it would take for ever
    // Not from inside a session's handlers.
    QMetaObject::invokeMethod(
        this, [this, code] { finished_(code); }, Qt::QueuedConnection);
}

}  // namespace goblin::worker
