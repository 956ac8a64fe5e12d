// A lab node for tests: the protocol's words and states in the simplest form, deterministic, in the test's
// own event loop. Everything it is told is kept to be looked at; what it says can be overridden.
#pragma once

#include <QTimer>
#include <deque>
#include <map>
#include <set>

#include "core/engine/reference/reference_engine.hpp"
#include "core/work/exchange.hpp"
#include "core/work/link.hpp"
#include "tests/unit/worker/fake_https.hpp"

namespace goblin::test {

// Numbers from -1 to 1 that look random and don't shrink; the same for the same seed.
Tensor numbers(const Shape& shape, int seed);

class FakeLab {
  public:
    explicit FakeLab(Certificate certificate = make_certificate(),
                     const QHostAddress& address = QHostAddress::LocalHost);

    enum class State { issued, committed, returned, agreed, disagreed, ended, cancelled };
    struct Assignment {
        Grant grant;
        State state = State::issued;
        std::vector<Tensor> expected;
        std::vector<Digest> digests;
        std::map<Digest, Bytes> uploads;  // leaf streams unpacked, as far as they came
        std::string reason;               // of its end
        ResultKind end_kind = ResultKind::failed;
        int times_committed = 0;
        bool asked = false;
    };

    InvitationLink link();
    // Breaks all connections and shows that key from now on.
    void change_key(const Certificate& certificate);
    uint16_t port() const { return https.serverPort(); }

    // A task C = A · B; inputs travel as blobs unless they are small and `inline_inputs`. Gives its
    // assignment's id; handed out when a contributor wants it.
    AssignmentId add_product(const Tensor& a, const Tensor& b, bool inline_inputs = false,
                             uint64_t duration_ms = 60'000);
    // Hands out a task as it is.
    AssignmentId add_task(TaskMessage task, uint64_t duration_ms = 60'000);
    void cancel(const AssignmentId& id, const std::string& reason);
    // In one reply cancels it and grants the same id again.
    void cancel_and_grant_anew(const AssignmentId& id);
    // Answers an exchange that waits, if what the lab would say has changed.
    void look() { look_at_waiting(); }
    const Assignment& assignment(const AssignmentId& id) const { return assignments_.at(id); }
    size_t count(State state) const;
    const ExchangeRequest& last_exchange() const { return exchanges.back(); }
    uint64_t downloads_of(const Digest& digest) const;

    // What it says.
    LabInfo info;
    bool approves = true;
    Credential credential{};
    std::set<Bytes> tokens;
    Versions versions;
    bool asks_for_outputs = true;  // else results are agreed by their digest
    bool decides = true;
    uint64_t wait_ms = 0;
    std::string notice;
    // Answered to the path instead of all else: status and code.
    std::map<std::string, std::pair<int, std::string>> refusals;
    std::vector<std::string> refusal_fields;
    int replies_to_lose = 0;                     // exchanges that are done and not answered
    std::optional<qsizetype> cut_next_download;  // after so many bytes
    bool sends_wrong_bytes = false;
    bool grants_more_than_wanted = false;  // all that is added, at once

    // What it was told.
    std::vector<ExchangeRequest> exchanges;
    std::vector<EnrolRequest> enrolments;
    std::vector<std::pair<Digest, uint64_t>> downloads;  // digest and first leaf
    std::vector<std::pair<Digest, uint64_t>> puts;       // digest and first leaf

    FakeHttps https;

  private:
    struct Waiting {
        FakeHttps::Answer answer;
        ExchangeRequest request;
        QTimer* timer = nullptr;
    };
    void handle(const FakeRequest& request, const FakeHttps::Answer& answer);
    FakeReply enrol(const FakeRequest& request);
    void exchange(const FakeRequest& request, const FakeHttps::Answer& answer);
    void take_results(const ExchangeRequest& request, ExchangeReply& reply);
    void take_data(Assignment& assignment, const Result& result);
    bool fill_news(const ExchangeRequest& request, ExchangeReply& reply);
    void reply_to(const FakeHttps::Answer& answer, const ExchangeReply& reply);
    void look_at_waiting();
    FakeReply download(const FakeRequest& request);
    FakeReply upload(const FakeRequest& request);
    Assignment* committed_with(const Digest& digest);
    void take_stream(Assignment& assignment, const Digest& digest, uint64_t first, const QByteArray& stream);
    void check_upload(Assignment& assignment);

    std::map<AssignmentId, Assignment> assignments_;
    std::deque<AssignmentId> to_grant_;
    std::optional<AssignmentId> to_grant_anew_;
    std::map<Digest, Tensor> blobs_;
    std::optional<Waiting> waiting_;
    std::map<std::string, ExchangeReply> answered_;  // by session and sequence
    uint8_t next_id_ = 1;
    uint8_t links_ = 0;
};

}  // namespace goblin::test
