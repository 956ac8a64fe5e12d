// Joins one lab's work with the network.
#include "app/worker/lab_session.hpp"

#include <algorithm>

#include "core/graph/checked.hpp"
#include "core/work/plain_text.hpp"
#include "core/work/quantity.hpp"

namespace goblin::worker {

namespace {

constexpr uint64_t work_wanted_ms = 30'000;
constexpr uint64_t tasks_wanted = 2;  // one computes, one is ready
// A task takes no more of memory while it waits, as a rule: two inputs and an output that ride inline.
constexpr uint64_t task_in_hand_bytes = 4 * limits::inline_tensor_bytes;
constexpr uint64_t shortest_listen_ms = 1'000;
constexpr uint64_t longest_disk_rest_factor = 10;

}  // namespace

LabSession::LabSession(std::filesystem::path folder, LabRecord record, SessionSetting& setting,
                       QObject* parent)
    : QObject(parent),
      folder_(std::move(folder)),
      record_(std::move(record)),
      setting_(setting),
      pin_(folder_, record_.address.key, setting.log),
      work_(folder_, record_.address.key, setting.cache, setting.why_not, setting.log),
      transfers_(record_.address, pin_, setting.network),
      lanes_(record_.address, pin_, record_.credential.value(),
             {[this](Lane lane, const ExchangeRequest& request, ExchangeReply reply) {
                  answered(lane, request, std::move(reply));
              },
              [this](const LabRefusal& refusal) { refused(refusal); },
              [this](const Error& error) { unreachable(error); }, [this] { poke(); }}) {
    news_.tell_all(setting_.cache.held(record_.address.key));
    for (QTimer* timer : {&transfer_pause_, &disk_rest_, &soon_}) {
        timer->setSingleShot(true);
        connect(timer, &QTimer::timeout, this, &LabSession::consider);
    }
    poke();
}

std::string LabSession::shown_name() const {
    const std::string place = record_.address.text();
    return record_.name.empty() ? place : fmt::format("{} ({})", plain_text(record_.name), place);
}

void LabSession::poke() {
    if (!soon_.isActive()) soon_.start(0);
}

void LabSession::blob_changed(const Digest& digest, bool held) {
    news_.changed(digest, held);
}

void LabSession::consider() {
    if (ended_) return;
    work_.pin_waiting();
    start_fetches();
    start_uploads();
    note_disk_trouble();
    setting_.work_ready();
    const bool hungry = tasks_told_ == 0 && !lanes_.told_to_wait() && want().tasks > 0;
    // Tasks may be on their way to us when we stop: one more exchange brings them, to be handed back.
    const bool parting = mood_ == Mood::stopping && reached_ && !parted_;
    if ((work_.book().has_something_to_say() || hungry || parting) && lanes_.may_speak()) send(Lane::speak);
    if (lanes_.may_listen() && (mood_ != Mood::stopping || lingers())) send(Lane::listen);
    setting_.changed();
}

void LabSession::start_fetches() {
    for (const Digest& digest : work_.idle_fetches()) transfers_.stop_fetch(digest);
    if (transfer_pause_.isActive()) return;
    for (const BlobNeed& need : work_.fetches_due()) {
        const BlobName name{record_.address.key, need.digest};
        const FetchOrder order{*record_.credential, need.digest, need.spec, setting_.cache.part_path_of(name),
                               setting_.cache.path_of(name)};
        transfers_.fetch(order, [this, digest = need.digest](const TransferOutcome& outcome) {
            work_.fetch_ended(digest, outcome);
            transfer_trouble(outcome, "fetching an input");
            poke();
        });
    }
}

void LabSession::start_uploads() {
    if (transfer_pause_.isActive()) return;
    for (const UploadDue& upload : work_.uploads_due()) {
        const UploadOrder order{*record_.credential, upload.digest, upload.spec, upload.file,
                                upload.check_by};
        transfers_.upload(order, [this, upload](const TransferOutcome& outcome) {
            work_.upload_ended(upload, outcome);
            if (outcome.kind == TransferOutcome::Kind::refused &&
                outcome.refusal.action == RefusalAction::drop_blob)
                setting_.log.info(
                    "{}: an output isn't wanted now: {}; it is kept until the lab asks again or "
                    "decides",
                    shown_name(), outcome.reason);
            transfer_trouble(outcome, "sending an output");
            poke();
        });
    }
}

void LabSession::transfer_trouble(const TransferOutcome& outcome, std::string_view what) {
    if (outcome.kind == TransferOutcome::Kind::done || outcome.progressed) transfer_back_off_.succeeded();
    const bool passing = outcome.kind == TransferOutcome::Kind::network ||
                         (outcome.kind == TransferOutcome::Kind::refused &&
                          outcome.refusal.action != RefusalAction::drop_blob);
    if (!passing) return;
    setting_.log.warning("{}: {} was interrupted: {}; it goes on later", shown_name(), what, outcome.reason);
    transfer_pause_.start(static_cast<int>(transfer_back_off_.next_ms(outcome.refusal.retry_after_ms)));
}

void LabSession::note_disk_trouble() {
    const std::optional<std::string> trouble = work_.take_disk_trouble();
    if (!trouble || disk_rest_.isActive()) return;  // one full disk refuses many things at once
    disk_rest_ms_ = std::clamp(2 * disk_rest_ms_, setting_.disk_rest_ms,
                               longest_disk_rest_factor * setting_.disk_rest_ms);
    disk_rest_.start(static_cast<int>(disk_rest_ms_));
    setting_.log.error("{}; takes no tasks for {}", *trouble, duration_text(disk_rest_ms_));
}

// Of the memory for tasks in hand, so that one lab takes nothing from others.
uint64_t LabSession::share_in_hand_bytes() const {
    return setting_.in_hand_bytes / std::max<uint64_t>(setting_.labs(), 1);
}

Want LabSession::want() const {
    Want want;
    want.devices = setting_.offers;
    const AssignmentBook& book = work_.book();
    const bool takes = mood_ == Mood::working && !disk_rest_.isActive() && !setting_.offers.empty() &&
                       book.size() < limits::open_assignments;
    if (!takes) return want;
    const uint64_t speed_per_ms = std::max<uint64_t>(setting_.speed_flops() / 1000, 1);
    const uint64_t ahead_ms = book.flops_ahead() / speed_per_ms;
    const uint64_t target_ms = work_wanted_ms / std::max<uint64_t>(setting_.labs(), 1);
    const bool few = book.tasks_ahead() < tasks_wanted;
    if (!few && ahead_ms >= target_ms) return want;
    const uint64_t free_bytes =
        share_in_hand_bytes() - std::min(share_in_hand_bytes(), work_.bytes_in_memory());
    want.tasks = std::min(limits::open_assignments - book.size(), free_bytes / task_in_hand_bytes);
    want.work_ms = ahead_ms < target_ms ? target_ms - ahead_ms : 1;
    return want;
}

std::string LabSession::state_text() const {
    if (mood_ == Mood::paused) return "paused";
    if (mood_ != Mood::working) return "stopping";
    if (disk_rest_.isActive()) return "disk full";
    return work_.book().tasks_ahead() > 0 ? "computing" : "idle";
}

void LabSession::send(Lane lane) {
    ExchangeRequest request;
    request.want = want();
    tasks_told_ = request.want.tasks;
    news_.put_into(request.want, lanes_.next_sequence());
    if (lane == Lane::speak) {
        request.results = work_.book().take_results();
        ++spoken_;
    } else {
        request.wait_ms = limits::exchange_wait_ms;
        listening_since_.start();
        spoken_at_listen_ = spoken_;
    }
    request.holding = work_.book().holding();
    request.state = state_text();
    lanes_.send(lane, std::move(request));
}

void LabSession::answered(Lane lane, const ExchangeRequest& request, ExchangeReply reply) {
    if (!reached_) setting_.log.info("{}: connected", shown_name());
    reached_ = true;
    if (mood_ == Mood::stopping && lane == Lane::speak && request.sequence >= parting_from_) parted_ = true;
    news_.answered(request.sequence);
    work_.acknowledged(reply.acknowledged, request.results);
    stop_computing(work_.decided(reply.decided));
    stop_computing(work_.cancelled(reply.cancel));
    work_.send_asked(reply.send);
    const bool brought_something =
        !reply.tasks.empty() || !reply.cancel.empty() || !reply.decided.empty() || !reply.send.empty();
    work_.granted(std::move(reply.tasks), share_in_hand_bytes());
    if (mood_ == Mood::paused || mood_ == Mood::stopping)
        work_.hand_back_unstarted("the owner wants the computer");
    const bool hurried = lane == Lane::listen && !brought_something && spoken_ == spoken_at_listen_ &&
                         listening_since_.elapsed() < static_cast<qint64>(shortest_listen_ms);
    lanes_.listen_after(std::max(reply.wait_ms, hurried ? shortest_listen_ms : 0));
    if (reply.notice != notice_ && !reply.notice.empty())
        setting_.log.info("{} says: {}", shown_name(), plain_text(reply.notice));
    notice_ = reply.notice;
    consider();
}

void LabSession::refused(const LabRefusal& refusal) {
    const std::string text = fmt::format("{}: {}", shown_name(), refusal.text());
    switch (refusal.action) {
        case RefusalAction::forget:
            record_.credential.reset();
            record_.joined_by.reset();
            try {
                save_lab_record(folder_, record_);
            } catch (const Error& error) {
                setting_.log.error("{}", error.what());
            }
            return end(text);
        case RefusalAction::stop:
            return end(text);
        case RefusalAction::wait_for_lab:
            setting_.log.info("{}; asks again every {}", text, duration_text(refusal.retry_after_ms));
            return;
        case RefusalAction::update:
            setting_.log.error("{}", text);
            return;
        case RefusalAction::try_again:
        case RefusalAction::drop_blob:
            setting_.log.warning("{}", text);
            return;
    }
}

void LabSession::unreachable(const Error& error) {
    setting_.log.warning("{}: {}; tries again", shown_name(), error.what());
    reached_ = false;
    // A lab that was started anew doesn't know what we hold.
    news_.tell_all(setting_.cache.held(record_.address.key));
    setting_.changed();
}

void LabSession::end(const std::string& reason) {
    ended_ = reason;
    lanes_.close();
    setting_.log.error("{}", reason);
    stop_computing_all();
    setting_.changed();
}

void LabSession::stop_computing(const std::vector<AssignmentId>& ids) {
    for (const AssignmentId& id : ids) setting_.stop_computing({record_.address.key, id});
}

void LabSession::stop_computing_all() {
    std::vector<AssignmentId> ids;
    for (const Assignment* assignment : std::as_const(work_.book()).in_stage(Stage::computing))
        ids.push_back(assignment->id);
    stop_computing(ids);
}

void LabSession::compute_ended(const AssignmentId& id, ComputeOutcome outcome) {
    if (outcome.kind == ComputeOutcome::Kind::computed) disk_rest_ms_ = 0;
    work_.compute_ended(id, std::move(outcome));
    consider();
}

void LabSession::pause(const std::string& reason) {
    if (mood_ == Mood::stopping) return;
    mood_ = Mood::paused;
    work_.set_stop_reason(reason);
    work_.hand_back_unstarted(reason);
    stop_computing_all();
    poke();
}

void LabSession::resume() {
    if (mood_ == Mood::paused) mood_ = Mood::working;
    poke();
}

void LabSession::drain() {
    if (mood_ == Mood::working) mood_ = Mood::draining;
    poke();
}

void LabSession::stop() {
    mood_ = Mood::stopping;
    parting_from_ = lanes_.next_sequence();
    const std::string reason = "the worker stops";
    work_.set_stop_reason(reason);
    work_.hand_back_unstarted(reason);
    poke();
}

void LabSession::linger() {
    lingers_ = true;
    poke();
}

void LabSession::halt() {
    lingers_ = false;
    stop_computing_all();
}

void LabSession::forget() {
    work_.hand_back_computed("the worker stops for good");
    poke();
}

bool LabSession::settled() const {
    return ended_ || (work_.book().count(Stage::computing) == 0 && !work_.book().has_something_to_say() &&
                      !lanes_.speaking() && !work_.uploading() && !lingers() && (!reached_ || parted_));
}

}  // namespace goblin::worker
