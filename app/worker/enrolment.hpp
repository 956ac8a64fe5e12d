// Enrolment: joins one lab by an invitation link. Goes on trying while the lab can't be reached.
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>

#include "app/worker/back_off.hpp"
#include "app/worker/http_connection.hpp"
#include "app/worker/lab_record.hpp"
#include "app/worker/lab_request.hpp"
#include "app/worker/worker_directory.hpp"

namespace goblin::worker {

// SHA-256 of an invitation's token: tells whether a link has been used here before.
Digest token_mark(const InvitationLink& link);

class Enrolment : public QObject {
  public:
    struct Events {
        std::function<void(LabRecord, bool approved)> joined;
        std::function<void(const std::string& reason)> refused;  // this link leads nowhere
        std::function<void(const std::string& reason)> delayed;  // it tries again
        // The lab has shown these keys, newest first. True: they are those of a lab that is known here by
        // another one, and this enrolment is over.
        std::function<bool(const std::vector<Digest>& keys)> known_otherwise;
    };
    struct Computer {
        ComputerId mark;
        std::string name;
    };

    // `lab` is the key by which the lab is known here, of which the volunteer's key is derived: the link's,
    // or an older or newer one. Throws as LabPin.
    Enrolment(InvitationLink link, const Digest& lab, const WorkerDirectory& directory, Computer computer,
              Log& log, Events events, QObject* parent = nullptr);

    std::string address_text() const { return HostPort{link_.host, link_.port}.text(); }

  private:
    void ask_who_it_is();
    void enrol(const LabInfo& info);
    // The body of an answer, or nothing when there was none that counts.
    std::optional<Bytes> body_of(const LabAnswer& answer);
    void try_again(const std::string& reason, uint64_t wait_ms);

    InvitationLink link_;
    LabAddress address_;
    VolunteerIdentity identity_;
    Computer computer_;
    Events events_;
    LabPin pin_;
    HttpConnection connection_;
    BackOff back_off_;
    QTimer again_;
};

}  // namespace goblin::worker
