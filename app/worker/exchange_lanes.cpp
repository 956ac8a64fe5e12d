// Sends exchanges, repeats what got lost, backs off.
#include "app/worker/exchange_lanes.hpp"

#include <cassert>

#include "app/worker/lab_request.hpp"
#include "core/work/identity.hpp"

namespace goblin::worker {

namespace {

constexpr uint64_t answer_ms = 25'000;  // for the lab's own work and the way, beside what it waits on purpose
static_assert(limits::exchange_wait_ms + answer_ms < limits::silence_ms);
// The lab answers a listening exchange when a newer one comes. One that isn't answered by then came after it,
// over a connection that took its time, and says what isn't true any more.
constexpr int stale_after_ms = 1'000;
constexpr uint64_t update_ms = 3'600'000;
constexpr uint64_t longest_pause_ms = 86'400'000;
// A person at the lab is asked for, and may just be looking on.
constexpr uint64_t person_soon_ms = 3'000;
constexpr uint64_t person_later_ms = 30'000;
constexpr uint64_t soon_times = 40;

LabRefusal version_refusal(const std::string& mismatch) {
    LabRefusal refusal;
    refusal.code = "version";
    refusal.message = mismatch;
    refusal.action = RefusalAction::update;
    return refusal;
}

}  // namespace

ExchangeLanes::ExchangeLanes(LabAddress address, LabPin& pin, const Credential& credential, Events events,
                             QObject* parent)
    : QObject(parent),
      address_(std::move(address)),
      credential_(credential),
      events_(std::move(events)),
      session_(random_bytes<FixedBytes<16>>()),
      connections_{HttpConnection(address_, pin), HttpConnection(address_, pin)} {
    pause_.setSingleShot(true);
    listen_later_.setSingleShot(true);
    stale_.setSingleShot(true);
    connect(&stale_, &QTimer::timeout, this, &ExchangeLanes::drop_stale_listening);
    connect(&pause_, &QTimer::timeout, this, &ExchangeLanes::pause_over);
    connect(&listen_later_, &QTimer::timeout, this, [this] { events_.free(); });
}

void ExchangeLanes::send(Lane lane, ExchangeRequest request) {
    assert(!flight(lane) && !waiting());
    request.versions = {};
    request.session = session_;
    request.sequence = ++sequence_;
    Bytes body = encode_message(request);
    assert(body.size() <= limits::exchange_bytes);
    flight(lane) = Flight{std::move(request), std::move(body), false};
    transmit(lane);
}

void ExchangeLanes::transmit(Lane lane) {
    Flight& flown = *flight(lane);
    flown.under_way = true;
    HttpRequest request = post_request("/v1/exchange", flown.body);
    request.fields.push_back(authorization(credential_));
    request.silence_ms = flown.request.wait_ms + answer_ms;
    ask_lab(connections_[static_cast<size_t>(lane)], std::move(request), limits::exchange_bytes,
            [this, lane](LabAnswer answer) {
                if (const auto* body = std::get_if<Bytes>(&answer)) return received(lane, *body);
                if (const auto* refusal = std::get_if<LabRefusal>(&answer)) {
                    LabRefusal told = *refusal;
                    told.retry_after_ms = lost(lane, wait_after(told));
                    return events_.refused(told);
                }
                lost(lane, 0);
                events_.unreachable(std::get<Error>(answer));
            });
}

void ExchangeLanes::received(Lane lane, const Bytes& body) {
    ExchangeReply reply;
    try {
        if (const std::string mismatch = version_mismatch(leading_versions(body), "lab node", "contributor");
            !mismatch.empty()) {
            lost(lane, update_ms);
            return events_.refused(version_refusal(mismatch));
        }
        reply = decode_message<ExchangeReply>(body);
    } catch (const Error& error) {
        lost(lane, 0);
        return events_.unreachable(error);
    }
    back_off_.succeeded();
    asked_a_person_ = 0;
    const Flight landed = std::move(*flight(lane));
    flight(lane).reset();
    if (lane == Lane::speak) {
        spoken_ = landed.request.sequence;
        if (flight(Lane::listen)) stale_.start(stale_after_ms);
    }
    events_.answered(lane, landed.request, std::move(reply));
}

uint64_t ExchangeLanes::wait_after(const LabRefusal& refusal) {
    if (refusal.action == RefusalAction::update) return std::max(refusal.retry_after_ms, update_ms);
    if (refusal.action != RefusalAction::wait_for_lab) return refusal.retry_after_ms;
    back_off_.succeeded();  // nothing failed
    const uint64_t wait_ms = ++asked_a_person_ <= soon_times ? person_soon_ms : person_later_ms;
    return std::max(refusal.retry_after_ms, wait_ms);
}

uint64_t ExchangeLanes::lost(Lane lane, uint64_t wait_ms) {
    if (lane == Lane::listen)
        flight(lane).reset();
    else
        flight(lane)->under_way = false;
    const uint64_t paused_ms = back_off_.next_ms(wait_ms);
    pause(paused_ms);
    return paused_ms;
}

void ExchangeLanes::pause(uint64_t ms) {
    const int wait = static_cast<int>(std::min(ms, longest_pause_ms));
    if (pause_.isActive() && pause_.remainingTime() > wait) return;
    pause_.start(wait);
}

void ExchangeLanes::pause_over() {
    if (flight(Lane::speak) && !flight(Lane::speak)->under_way) transmit(Lane::speak);
    events_.free();
}

void ExchangeLanes::drop_stale_listening() {
    if (!flight(Lane::listen) || flight(Lane::listen)->request.sequence > spoken_) return;
    connections_[static_cast<size_t>(Lane::listen)].abort();
    flight(Lane::listen).reset();
    events_.free();
}

void ExchangeLanes::listen_after(uint64_t ms) {
    if (ms > 0)
        listen_later_.start(static_cast<int>(std::min(ms, longest_pause_ms)));
    else
        listen_later_.stop();
}

void ExchangeLanes::close() {
    for (HttpConnection& connection : connections_) connection.abort();
    for (auto& flown : flights_) flown.reset();
    for (QTimer* timer : {&pause_, &listen_later_, &stale_}) timer->stop();
}

}  // namespace goblin::worker
