// Exchange lanes: carries exchanges to one lab over two connections. One lane speaks: it brings results and
// is answered at once. The other listens: it has nothing to say and waits at the lab for news. When we speak,
// the lab answers the listening exchange too, so nobody waits for a timer.
//
// A speaking exchange without an answer is sent again, the same bytes under the same number, until there is
// one. A listening one that is lost is simply not repeated.
#pragma once

#include <QObject>
#include <QTimer>
#include <array>
#include <functional>
#include <optional>

#include "app/worker/back_off.hpp"
#include "app/worker/http_connection.hpp"
#include "app/worker/lab_refusal.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

enum class Lane { speak, listen };

class ExchangeLanes : public QObject {
  public:
    struct Events {
        // The answer to that request. Another exchange may be sent from inside all of these.
        std::function<void(Lane, const ExchangeRequest&, ExchangeReply)> answered;
        // No answer that counts; the lane tries again by itself, or is asked anew after `pause()`. The
        // refusal's retry_after_ms is when.
        std::function<void(const LabRefusal&)> refused;
        std::function<void(const Error&)> unreachable;
        // A wait is over: perhaps there is something to send.
        std::function<void()> free;
    };

    // `pin` outlives this.
    ExchangeLanes(LabAddress address, LabPin& pin, const Credential& credential, Events events,
                  QObject* parent = nullptr);

    bool may_speak() const { return !flight(Lane::speak) && !waiting(); }
    bool may_listen() const {
        return !flight(Lane::speak) && !flight(Lane::listen) && !waiting() && !listen_later_.isActive();
    }
    bool speaking() const { return flight(Lane::speak).has_value(); }

    // The lab asked not to be asked for work for a while.
    bool told_to_wait() const { return listen_later_.isActive(); }

    uint64_t next_sequence() const { return sequence_ + 1; }
    // Fills in versions, session and sequence. The lane must be free.
    void send(Lane lane, ExchangeRequest request);
    // No listening before that.
    void listen_after(uint64_t ms);
    // Neither lane sends before that; what is in flight goes on.
    void pause(uint64_t ms);
    // Drops everything in flight for good.
    void close();

  private:
    struct Flight {
        ExchangeRequest request;
        Bytes body;
        bool under_way = false;  // else it waits to be sent again
    };

    const std::optional<Flight>& flight(Lane lane) const { return flights_[static_cast<size_t>(lane)]; }
    std::optional<Flight>& flight(Lane lane) { return flights_[static_cast<size_t>(lane)]; }
    bool waiting() const { return pause_.isActive(); }
    void transmit(Lane lane);
    void received(Lane lane, const Bytes& body);
    // Gives after how long the lanes are used again.
    uint64_t lost(Lane lane, uint64_t wait_ms);
    uint64_t wait_after(const LabRefusal& refusal);
    void pause_over();
    void drop_stale_listening();

    LabAddress address_;
    Credential credential_;
    Events events_;
    FixedBytes<16> session_;
    uint64_t sequence_ = 0;
    std::array<std::optional<Flight>, 2> flights_;
    std::array<HttpConnection, 2> connections_;
    BackOff back_off_;
    uint64_t asked_a_person_ = 0;  // how often in a row
    QTimer pause_;
    QTimer listen_later_;
    uint64_t spoken_ = 0;  // the sequence of the latest speaking exchange that was answered
    QTimer stale_;
};

}  // namespace goblin::worker
