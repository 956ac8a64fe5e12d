// The worker: one directory's labs and this computer's devices. Hands ready tasks to free devices, lab by lab
// in turn, and ends when it is told to, has been idle, or has lived as long as it may.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QThread>
#include <QTimer>
#include <map>
#include <memory>
#include <vector>

#include "app/worker/device.hpp"
#include "app/worker/enrolment.hpp"
#include "app/worker/lab_session.hpp"

namespace goblin::worker {

struct WorkerSettings {
    std::vector<InvitationLink> links;
    std::string name;  // of this computer, shown to the lab; may be empty
    uint64_t disk_bytes = uint64_t{8} << 30;
    uint64_t in_hand_bytes = uint64_t{64}
                             << 20;  // of memory, for tasks that wait: what travels with exchanges
    uint64_t finish_ms = 10'000;     // how long a running task may go on after the worker was told to stop;
                                     // ephemeral: and the lab may ask
    uint64_t max_idle_ms = 0;        // 0: for ever
    uint64_t max_lifetime_ms = 0;    // 0: for ever
    uint64_t disk_rest_ms = 60'000;  // how long it takes no tasks after the disk refused something; doubles
    bool ephemeral = false;          // leaves nothing for a next start
};

class Worker : public QObject {
  public:
    // `finished` gets the exit code, once. Throws what keeps the worker from starting at all,
    // ErrorKind::usage when there is no lab to work for.
    Worker(WorkerDirectory& directory, WorkerSettings settings, std::vector<std::unique_ptr<Device>> devices,
           Log& log, std::function<void(int)> finished);
    ~Worker() override;

    // The first time: finish, hand back, tell the labs, end. The second time: end at once.
    void stop(const std::string& reason);
    // Hands everything back at once and takes nothing, until resume().
    void pause(const std::string& reason);
    void resume();

    const std::vector<std::unique_ptr<LabSession>>& sessions() const { return sessions_; }

  private:
    struct Running {
        Device* device = nullptr;
        uint64_t flops = 0;
    };

    // A lab in the directory.
    struct LabMemory {
        Digest lab;
        std::vector<Digest> keys;  // that it is known to have had, the one that counts first
        std::optional<LabRecord> record;
    };

    void open_labs();
    void open_lab(const Digest& lab);
    void join(const InvitationLink& link, const Digest& lab);
    void joined(const LabRecord& record, bool approved);
    void join_refused(const Digest& lab, const std::string& reason);
    void end_enrolment(const Digest& lab);
    bool known_otherwise(const Digest& lab, const InvitationLink& link, const std::vector<Digest>& keys);
    std::vector<LabMemory> remembered_labs() const;
    Digest lab_of(const InvitationLink& link) const;
    LabSession* session_of(const Digest& lab);
    void schedule();
    bool give_task(Device& device);
    void compute_ended(const TaskName& task, ComputeOutcome outcome);
    void measured(const Running& run, const Computed& computed);
    std::optional<std::string> why_not(const Graph& graph) const;
    void tick();
    void watch_lifetime();
    void tell_tally();
    void watch_devices();
    bool finishing() const;
    void check_settled();
    void check_labs();
    void leave(int code);

    WorkerDirectory& directory_;
    WorkerSettings settings_;
    Log& log_;
    std::function<void(int)> finished_;
    QThread network_;
    std::unique_ptr<BlobCache> cache_;
    SessionSetting setting_;
    std::vector<std::unique_ptr<LabSession>> sessions_;
    std::map<Digest, std::unique_ptr<Enrolment>> enrolments_;
    std::map<TaskName, Running> running_;
    size_t turn_ = 0;  // whose session's task goes next
    double speed_flops_ = 0;
    QTimer tick_;
    QElapsedTimer alive_;
    QElapsedTimer idle_;
    QElapsedTimer tally_told_at_;
    Tally tally_told_;
    QTimer finish_;
    QTimer last_word_;
    std::optional<std::string> paused_;  // why
    bool draining_ = false;
    bool stopping_ = false;
    bool forgot_ = false;
    bool left_ = false;
    std::vector<std::unique_ptr<Device>> devices_;  // last: its threads end first
};

}  // namespace goblin::worker
