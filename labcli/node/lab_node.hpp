// LabNode: the parts of a running lab, wired together.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "labcli/log/log_sink.hpp"
#include "labcli/node/exchange_turns.hpp"
#include "labcli/node/lab_directory.hpp"
#include "labcli/node/lab_thread.hpp"
#include "labcli/node/pool_workshop.hpp"
#include "labcli/node/uploads.hpp"
#include "labcli/schedule/exchange_desk.hpp"
#include "labcli/service/contributor_door.hpp"
#include "labcli/store/store.hpp"

namespace goblin::lab {

struct NodeSettings {
    unsigned threads = 0;  // for verifying; 0: one for each processor
    uint64_t upload_budget_bytes = uint64_t{96} << 20;
    LogSink log;
    // The lab node can't go on (its database can't be written): called once, from any thread.
    std::function<void(const std::string& reason)> fatal;
};

class LabNode final : public ContributorDoor {
  public:
    // Opens the lab and takes up the jobs that were running. Throws when the lab can't be opened.
    LabNode(LabDirectory& directory, const LabCertificate& certificate, NodeSettings settings);
    ~LabNode() override = default;
    // Answers everybody who waits; nothing is handed out any more.
    void stop();

    // For contributors.
    LabInfo info() override;
    void enrol(const Peer& peer, EnrolRequest request, Done<EnrolReply> done) override;
    void exchange(const Caller& caller, ExchangeRequest request, Done<ExchangeReply> done) override;
    void open_blob(const Caller& caller, const Digest& digest,
                   Done<std::shared_ptr<BlobSource>> done) override;
    void open_upload(const Caller& caller, const Digest& digest,
                     Done<std::shared_ptr<BlobSink>> done) override;
    void finish_upload(const Caller& caller, const Digest& digest, std::shared_ptr<BlobSink> sink,
                       Done<Nothing> done) override;

    // For the administration, see admin_verbs.hpp. Runs `turn` on the lab's thread and waits until what it
    // changed is on disk; throws what it throws.
    struct Parts {
        const LabCertificate& certificate;
        const Environment& environment;
        Contributors& contributors;
        JobBoard& board;
        ExchangeDesk& desk;
        Store& store;
        uint16_t port;
    };
    template <typename Turn>
    auto administer(Turn turn) {
        auto kept = std::make_shared<std::promise<void>>();
        std::future<void> wait = kept->get_future();
        auto answer = thread_.call([this, turn = std::move(turn), &kept] {
            auto result = turn(parts());
            store_.after_commit([kept] { kept->set_value(); });
            return result;
        });
        kept.reset();
        try {
            wait.get();
        } catch (const std::future_error&) {
            throw Error(ErrorKind::io,
                        "expected the lab's database to keep the change, found it failing; the lab node's "
                        "log says why");
        }
        return answer;
    }
    void set_port(uint16_t port) { port_ = port; }

  private:
    Parts parts() { return {certificate_, environment_, contributors_, board_, desk_, store_, port_}; }
    // A turn that owes an answer: 503 when too many wait, 500 when it throws.
    template <typename Reply, typename Turn>
    void answer(Done<Reply> done, Turn turn);
    // The same for a computer of this lab that may work.
    template <typename Reply, typename Turn>
    void answer_member(const Caller& caller, Done<Reply> done, Turn turn);
    void take_up_jobs();
    void take_up(JobRecord job);
    void tick();
    void watch_disk();
    std::variant<LiveComputer*, Refusal> authenticate(const Caller& caller);

    LabDirectory& directory_;
    LabCertificate certificate_;
    LabSettings settings_of_lab_;
    NodeSettings settings_;
    Environment environment_;
    SecretKey nonce_secret_;
    Store store_;
    LabThread thread_;
    ExchangeTurns exchange_turns_;
    Contributors contributors_;
    AssignmentBook book_;
    PoolWorkshop workshop_;
    JobBoard board_;
    Dispatcher dispatcher_;
    ExchangeDesk desk_;
    Uploads uploads_;
    std::atomic<uint16_t> port_{0};
    uint64_t last_disk_look_ms_ = 0;
    bool news_ = false;
    // Last, so that it goes first, also when the constructor throws: no turn may find a part gone.
    struct StopFirst {
        LabNode& node;
        ~StopFirst() { node.stop(); }
    } stop_first_{*this};
};

}  // namespace goblin::lab
