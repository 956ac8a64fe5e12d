// A contributor inside a test's own process, over the real protocol: it takes tasks, computes them honestly
// with the reference engine, and then says about them what the test wants it to say.
//
// step() is one exchange with everything that is due, as a worker would make it. Tests that break the
// protocol itself use the parts below it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/work/identity.hpp"
#include "core/work/link.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/simulated_contributor.hpp"

namespace goblin::test {

// An assignment at hand.
struct Work {
    Grant grant;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;  // honest until the test's `lie` changes them
    enum class Stage { granted, committed, asked, sent } stage = Stage::granted;

    const AssignmentId& id() const { return grant.assignment; }
};

class Contributor {
  public:
    // Changes the numbers before anything is said about them: the commitment fits the lie.
    using Lie = std::function<void(Work& work)>;

    struct Settings {
        HttpsClient::Settings lab;
        std::string link;
        std::string name = "contributor";
        Lie lie;  // empty: honest
        uint64_t tasks_at_once = 4;
        bool takes_floats = true;
        uint64_t memory_bytes = uint64_t{1} << 30;
        uint64_t speed_flops = uint64_t{10'000'000'000};
    };
    // Enrols. Throws Refused.
    explicit Contributor(Settings settings);
    // With a fresh link of the lab.
    Contributor(const LabProcess& lab, const std::string& name, Lie lie = {});

    const std::string& name() const { return settings_.name; }
    Settings& settings() { return settings_; }

    // Returns whether anything happened: a task, a receipt, a wish, a verdict.
    bool step(uint64_t wait_ms = 0);
    // Takes no more tasks but ends what it has, for at most so long.
    void finish_up(int patience_ms = 30'000);

    // ---- the parts of a step
    // The request with everything that is due; `want_tasks` more tasks.
    ExchangeRequest request_of(std::vector<Result> results, uint64_t want_tasks);
    ExchangeReply exchange(const ExchangeRequest& request);
    // Takes what a reply says into the books; tasks are computed.
    void take(const ExchangeReply& reply);
    // Waits for one task; null when none comes in time. It stays in works().
    Work* take_task(int patience_ms = 30'000);
    // One exchange with this alone; the receipt for it.
    Receipt tell(Result result);
    static Result commitment(const Work& work);
    static Result data(const Work& work);
    static Result failure(const Work& work, const std::string& reason);
    static Result handing_back(const Work& work);
    // By PUT; the reply's status.
    int upload(Work& work);
    // Makes exchanges that bring nothing until the lab asks for this work's numbers.
    bool wait_until_asked(const AssignmentId& id, int patience_ms = 30'000);
    // Starts a new session, as a worker that was started again; with `forgetful` it has lost everything it
    // had.
    void start_again(bool forgetful);

    std::unordered_map<std::string, Work>& works() { return works_; }  // by the assignment's id in hex
    Work* find(const AssignmentId& id);
    SimulatedContributor& wire() { return wire_; }
    const FixedBytes<16>& session() const { return session_; }

    // What it has been told.
    uint64_t taken = 0;  // tasks
    uint64_t agreed = 0;
    std::vector<std::string> convictions;  // reasons
    std::vector<std::string> cancelled;
    std::vector<std::string> refusals;  // of results
    std::string notice;

  private:
    void compute(Work& work);
    void upload_if_wanted(Work& work);
    bool is_small(const Work& work) const;

    Settings settings_;
    InvitationLink link_;
    SimulatedContributor wire_;
    VolunteerIdentity identity_;
    FixedBytes<16> mark_;
    FixedBytes<16> session_;
    uint64_t sequence_ = 0;
    std::unique_ptr<Engine> engine_;
    std::unordered_map<std::string, Work> works_;
    std::unordered_map<Digest, std::vector<std::byte>, DigestHash> blobs_;
    std::vector<Digest> new_blobs_;
};

// Contributors at work on threads of their own, until the crew is gone.
class Crew {
  public:
    ~Crew() { stop(); }
    void add(Contributor& contributor);
    // Ends the threads; throws the first error that one of them met.
    void rest();

  private:
    void stop();

    std::atomic<bool> stop_ = false;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::vector<std::thread> threads_;
};

// Signs and sends an enrolment. Throws Refused.
EnrolRequest enrolment(const InvitationLink& link, const LabInfo& lab, const VolunteerIdentity& identity,
                       const FixedBytes<16>& mark, const std::string& name);

}  // namespace goblin::test
