// ExchangeDesk: takes what a contributor brings in an exchange and answers with what it should know and do
// next.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "labcli/schedule/dispatcher.hpp"
#include "labcli/schedule/job_board.hpp"

namespace goblin::lab {

class ExchangeDesk {
  public:
    // Assignments that are over and are looked up for one exchange, while all other contributors wait.
    static constexpr uint64_t look_ups_per_exchange = 256;

    ExchangeDesk(const Environment& environment, Contributors& contributors, AssignmentBook& book,
                 JobBoard& board, Dispatcher& dispatcher, Journal& journal)
        : environment_(environment),
          contributors_(contributors),
          book_(book),
          board_(board),
          dispatcher_(dispatcher),
          journal_(journal) {}

    // Answers once everything the answer speaks of is on disk; with nothing to say, up to request.wait_ms
    // later.
    void exchange(LiveComputer& computer, const Peer& peer, ExchangeRequest request,
                  Done<ExchangeReply> done);
    // Answers those waiting exchanges for which there is news or work, or whose time has come.
    void serve_waiting();
    // The lab node stops: answers all of them.
    void release_waiting();

    // A blob that is an input of an open assignment of this computer.
    struct BlobPlace {
        std::shared_ptr<Plan> plan;
        SliceNumber slice = 0;
    };
    std::optional<BlobPlace> find_blob(const LiveComputer& computer, const Digest& digest);

    // Outputs that this computer committed to by one digest: equal ones arrive together.
    struct UploadPlace {
        AssignmentId assignment{};
        std::vector<size_t> outputs;  // at least one
        SecretKey key{};
        TensorSpec spec;
        bool asked = false;     // the lab asked for it
        bool complete = false;  // it has arrived before
    };
    std::optional<UploadPlace> find_upload(const LiveComputer& computer, const Digest& digest);
    // The output has arrived, for all places that it has. Whether it has the digest that was committed, the
    // verifier finds out when all are there. Returns why it is not taken, or nothing.
    std::string take_upload(const LiveComputer& computer, const UploadPlace& place, ArrivedOutput output);

    // Takes back what a computer has (ban, forget): its tasks go to others.
    void drop_assignments(const LiveComputer& computer, const std::string& reason);
    // Assignments whose deadline has passed.
    void expire();

  private:
    std::optional<Refusal> take_session(LiveComputer& computer, const ExchangeRequest& request);
    // Ends what this computer can't bring any more because it has lost it: nobody waits for that.
    void drop_lost(LiveComputer& computer, const std::vector<AssignmentId>& holding, bool started_again);
    void take_offer(LiveComputer& computer, const Peer& peer, const ExchangeRequest& request);
    void take_results(LiveComputer& computer, std::vector<Result>& results, std::vector<Receipt>& receipts);
    // Nothing when the worker must tell it again.
    std::optional<Receipt> take_result(LiveComputer& computer, Result& result);
    Receipt take_commitment(Assignment& assignment, Result& result);
    Receipt take_data(Assignment& assignment, Result& result);
    Receipt take_end(Assignment& assignment, Result& result);
    // Whether this exchange may still look that one up.
    bool may_look_up(const AssignmentId& id);
    Receipt receipt_for_closed(const LiveComputer& computer, const Result& result);
    // Null when the task or its job is over.
    OpenTask* task_of(const Assignment& assignment);
    // Looks at a task whose claims have changed, unless its job is over.
    void evaluate(JobId job, TaskNumber task);
    void drop_claim(Assignment& assignment);
    // Adds it to what the contributor is to send; whether that is news to it.
    bool tell_to_send(Assignment& assignment, ExchangeReply& reply);
    void give_up(Assignment& assignment, std::string_view reason);
    // Whether the contributor is to send what it doesn't know of yet.
    bool add_news(LiveComputer& computer, const std::vector<AssignmentId>& holding, ExchangeReply& reply);
    void remember_closed(LiveComputer& computer, const AssignmentId& id);
    void answer(LiveComputer& computer, ExchangeReply reply, Done<ExchangeReply> done);
    bool serve(LiveComputer& computer);

    const Environment& environment_;
    Contributors& contributors_;
    AssignmentBook& book_;
    JobBoard& board_;
    Dispatcher& dispatcher_;
    Journal& journal_;
    uint64_t look_ups_left_ = 0;  // of the exchange at hand
};

}  // namespace goblin::lab
