// Hands orders to the network thread and outcomes back.
#include "app/worker/transfers.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>

namespace goblin::worker {

namespace {
constexpr size_t fetch_lanes = 2;
constexpr size_t upload_lanes = 1;

TransferOutcome stopped() {
    TransferOutcome outcome;
    outcome.kind = TransferOutcome::Kind::stopped;
    return outcome;
}
}  // namespace

class Transfers::Lanes : public QObject {
  public:
    Lanes(LabAddress address, LabPin& pin, Transfers& owner)
        : address_(std::move(address)), pin_(pin), owner_(owner) {}

    void fetch(FetchOrder order, TransferDone done) {
        fetches_.push_back({std::move(order), std::move(done)});
        start_fetches();
    }

    void upload(UploadOrder order, TransferDone done) {
        uploads_.push_back({std::move(order), std::move(done)});
        start_uploads();
    }

    void stop_fetch(const Digest& digest) {
        const auto waiting = std::find_if(fetches_.begin(), fetches_.end(),
                                          [&](const auto& f) { return f.order.digest == digest; });
        if (waiting != fetches_.end()) {
            owner_.report(waiting->done, stopped());
            fetches_.erase(waiting);
            return;
        }
        for (FetchLane& lane : fetch_lanes_) {
            if (!lane.running || lane.running->order.digest != digest) continue;
            lane.connection->abort();
            end(lane, stopped());
            start_fetches();
        }
    }

  private:
    template <typename Order>
    struct Waiting {
        Order order;
        TransferDone done;
    };
    template <typename Order>
    struct Lane {
        std::unique_ptr<HttpConnection> connection;
        std::optional<Waiting<Order>> running;
    };
    using FetchLane = Lane<FetchOrder>;
    using UploadLane = Lane<UploadOrder>;

    template <typename Order>
    void end(Lane<Order>& lane, TransferOutcome outcome) {
        const TransferDone done = std::move(lane.running->done);
        lane.running.reset();
        owner_.report(done, std::move(outcome));
    }

    // Starts what waits on lanes that are free.
    template <typename Order, size_t count, typename Start>
    void start(std::deque<Waiting<Order>>& waiting, std::array<Lane<Order>, count>& lanes, Start start_one) {
        for (Lane<Order>& lane : lanes) {
            while (!waiting.empty() && !lane.running) {
                if (!lane.connection) lane.connection = std::make_unique<HttpConnection>(address_, pin_);
                lane.running = std::move(waiting.front());
                waiting.pop_front();
                start_one(lane);
            }
        }
    }

    void start_fetches() {
        start(fetches_, fetch_lanes_, [this](FetchLane& lane) {
            fetch_blob(*lane.connection, lane.running->order, [this, &lane](TransferOutcome outcome) {
                end(lane, std::move(outcome));
                QMetaObject::invokeMethod(
                    this, [this] { start_fetches(); }, Qt::QueuedConnection);
            });
        });
    }

    void start_uploads() {
        start(uploads_, upload_lanes_, [this](UploadLane& lane) {
            upload_blob(*lane.connection, lane.running->order, [this, &lane](TransferOutcome outcome) {
                end(lane, std::move(outcome));
                QMetaObject::invokeMethod(
                    this, [this] { start_uploads(); }, Qt::QueuedConnection);
            });
        });
    }

    LabAddress address_;
    LabPin& pin_;
    Transfers& owner_;
    std::deque<Waiting<FetchOrder>> fetches_;
    std::deque<Waiting<UploadOrder>> uploads_;
    std::array<FetchLane, fetch_lanes> fetch_lanes_;
    std::array<UploadLane, upload_lanes> upload_lanes_;
};

Transfers::Transfers(LabAddress address, LabPin& pin, QThread& network, QObject* parent)
    : QObject(parent), lanes_(new Lanes(std::move(address), pin, *this)) {
    lanes_->moveToThread(&network);
}

Transfers::~Transfers() {
    // After this no outcome can be on its way to us any more.
    QMetaObject::invokeMethod(
        lanes_, [lanes = lanes_] { delete lanes; }, Qt::BlockingQueuedConnection);
}

void Transfers::fetch(FetchOrder order, TransferDone done) {
    QMetaObject::invokeMethod(
        lanes_,
        [lanes = lanes_, order = std::move(order), done = std::move(done)] { lanes->fetch(order, done); },
        Qt::QueuedConnection);
}

void Transfers::upload(UploadOrder order, TransferDone done) {
    QMetaObject::invokeMethod(
        lanes_,
        [lanes = lanes_, order = std::move(order), done = std::move(done)] { lanes->upload(order, done); },
        Qt::QueuedConnection);
}

void Transfers::stop_fetch(const Digest& digest) {
    QMetaObject::invokeMethod(
        lanes_, [lanes = lanes_, digest] { lanes->stop_fetch(digest); }, Qt::QueuedConnection);
}

void Transfers::report(const TransferDone& done, TransferOutcome outcome) {
    QMetaObject::invokeMethod(
        this, [done, outcome = std::move(outcome)] { done(outcome); }, Qt::QueuedConnection);
}

}  // namespace goblin::worker
