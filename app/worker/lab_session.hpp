// Lab session: this computer's dealings with one lab, in Qt's event loop. Joins what LabWork wants
// (exchanges, fetches, uploads, computing) with what happens (answers, transfers, outcomes), and never waits
// for anything.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <memory>

#include "app/worker/blob_news.hpp"
#include "app/worker/exchange_lanes.hpp"
#include "app/worker/lab_record.hpp"
#include "app/worker/lab_work.hpp"
#include "app/worker/transfers.hpp"

namespace goblin::worker {

// What all sessions of a worker share. Outlives them.
struct SessionSetting {
    BlobCache& cache;
    Log& log;
    QThread& network;
    uint64_t disk_rest_ms;
    uint64_t in_hand_bytes;  // of memory, for the open tasks of all labs
    std::vector<DeviceOffer> offers;
    LabWork::WhyNot why_not;
    std::function<void()> work_ready;                     // a task may be ready for a device
    std::function<void(const TaskName&)> stop_computing;  // its outcome will come
    std::function<void()> changed;                        // settled() or ended() may have changed
    std::function<uint64_t()> speed_flops;                // of this computer, as measured so far
    std::function<uint64_t()> labs;                       // among which the work is shared
};

class LabSession : public QObject {
  public:
    // Throws ErrorKind::io when the lab's folder can't be used, ErrorKind::input when it is damaged. The
    // record must hold a credential.
    LabSession(std::filesystem::path folder, LabRecord record, SessionSetting& setting,
               QObject* parent = nullptr);

    const LabRecord& record() const { return record_; }
    // The lab's name and place, for people.
    std::string shown_name() const;
    LabWork& work() { return work_; }
    LabPin& pin() { return pin_; }

    // Something may be to be done; looks soon.
    void poke();
    void blob_changed(const Digest& digest, bool held);
    void compute_ended(const AssignmentId& id, ComputeOutcome outcome);

    // Hands everything that isn't computed back at once and takes nothing more, until resume().
    void pause(const std::string& reason);
    void resume();
    // Takes nothing more; what is in hand goes on.
    void drain();
    // Hands back what isn't being computed and takes nothing more. What is being computed may end.
    void stop();
    // After stop(): goes on listening, until the lab has the numbers of all that is computed, or halt().
    void linger();
    // After stop(): stops computing too.
    void halt();
    // After stop(): hands back the outputs as well, for good.
    void forget();

    // Nothing is being computed, uploaded or told.
    bool settled() const;
    bool lingers() const { return lingers_ && !ended_ && work_.book().owes_numbers(); }
    // The lab is not asked any more, for this reason.
    const std::optional<std::string>& ended() const { return ended_; }

  private:
    enum class Mood { working, draining, paused, stopping };

    void consider();
    void start_fetches();
    void start_uploads();
    void transfer_trouble(const TransferOutcome& outcome, std::string_view what);
    void note_disk_trouble();
    uint64_t share_in_hand_bytes() const;
    Want want() const;
    std::string state_text() const;
    void send(Lane lane);
    void answered(Lane lane, const ExchangeRequest& request, ExchangeReply reply);
    void refused(const LabRefusal& refusal);
    void unreachable(const Error& error);
    void end(const std::string& reason);
    void stop_computing(const std::vector<AssignmentId>& ids);
    void stop_computing_all();

    std::filesystem::path folder_;
    LabRecord record_;
    SessionSetting& setting_;
    LabPin pin_;
    LabWork work_;
    Transfers transfers_;
    ExchangeLanes lanes_;
    BlobNews news_;
    Mood mood_ = Mood::working;
    std::optional<std::string> ended_;
    uint64_t tasks_told_ = 0;  // wanted by the latest exchange
    bool lingers_ = false;
    bool reached_ = false;
    uint64_t parting_from_ = 0;  // the first sequence after stop()
    bool parted_ = false;        // the lab knows that we stop, and has sent no task that we don't know of
    std::string notice_;
    QElapsedTimer listening_since_;
    uint64_t spoken_ = 0;  // counts speaking exchanges
    uint64_t spoken_at_listen_ = 0;
    BackOff transfer_back_off_;
    QTimer transfer_pause_;
    QTimer disk_rest_;
    uint64_t disk_rest_ms_ = 0;
    QTimer soon_;
};

}  // namespace goblin::worker
