// Who is asked for numbers and never sends them keeps nobody else from uploading theirs.
#include <QTest>

#include "fake_lab.hpp"
#include "labcli/node/uploads.hpp"

namespace goblin::lab {

namespace {

constexpr int64_t edge = 160;  // of an output that is too large to ride inside an exchange
constexpr uint64_t output_bytes = edge * edge * sizeof(int32_t);
static_assert(output_bytes > limits::inline_tensor_bytes);

}  // namespace

class TestStalling : public QObject {
    Q_OBJECT

    std::unique_ptr<FakeLab> lab_;
    std::unique_ptr<Uploads> uploads_;

    // Whether the lab took the numbers.
    bool upload(LiveComputer& computer, const Grant& grant, const Tensor& numbers) {
        const Digest digest = tensor_digest(grant.key, numbers);
        const auto place = lab_->desk.find_upload(computer, digest);
        if (!place || !place->asked) throw std::logic_error("not asked");
        const auto upload = uploads_->open(computer.record.id, digest, *place, lab_->now_ms);
        if (!upload) return false;
        upload->write_leaf(0, numbers.bytes());
        uploads_->close(computer.record.id, digest);
        const std::string reason = lab_->desk.take_upload(computer, upload->place(), *upload->take());
        if (!reason.empty()) throw std::logic_error(reason);
        lab_->run();
        return true;
    }
    void make_lab(uint64_t seed) {
        lab_ = std::make_unique<FakeLab>(seed);
        uploads_ =
            std::make_unique<Uploads>(output_bytes, [this](uint64_t bytes) { lab_->board.make_room(bytes); });
    }
    struct Dispute {
        std::shared_ptr<FakePlan> plan;
        LiveComputer* honest = nullptr;
        Grant lie;
        Grant truth;
        Tensor right;
    };
    // In a job of two tasks two have committed to different numbers of one. Both are asked for them; the
    // honest one's have arrived. Of the seeds, one is taken with which the honest one is drawn first: the
    // liar wouldn't send.
    Dispute disputed() {
        for (uint64_t seed = 1;; ++seed) {
            make_lab(seed);
            Dispute dispute;
            dispute.plan = std::make_shared<FakePlan>(2, DType::i32, edge);
            lab_->submit(dispute.plan, Policy::redundant);
            LiveComputer& liar = lab_->join();
            dispute.honest = &lab_->join();
            dispute.lie = lab_->take(liar).at(0);
            dispute.truth = lab_->take(*dispute.honest).at(0);
            dispute.right = FakeLab::honest(dispute.truth);
            lab_->tell(liar, FakeLab::commitment(dispute.lie, FakeLab::lie(dispute.lie)));
            lab_->tell(*dispute.honest, FakeLab::commitment(dispute.truth, dispute.right));
            if (!lab_->asked(dispute.truth)) continue;
            if (!upload(*dispute.honest, dispute.truth, dispute.right)) throw std::logic_error("no room");
            if (!lab_->asked(dispute.lie)) throw std::logic_error("the liar isn't asked");
            return dispute;
        }
    }

  private slots:
    void numbers_that_wait_for_one_who_stalls_give_way_and_are_asked_for_again() {
        const Dispute dispute = disputed();
        QCOMPARE(lab_->book.find(dispute.truth.assignment)->state, AssignmentState::returned);

        // Two others, whose numbers need the memory.
        LiveComputer& one = lab_->join();
        LiveComputer& two = lab_->join();
        const Grant first = lab_->take(one).at(0);
        const Grant second = lab_->take(two).at(0);
        QCOMPARE(lab_->task(first), lab_->task(second));
        const Tensor numbers = FakeLab::honest(first);
        lab_->tell(one, FakeLab::commitment(first, numbers));
        lab_->tell(two, FakeLab::commitment(second, numbers));
        const bool first_sends = lab_->asked(first);
        QVERIFY(upload(first_sends ? one : two, first_sends ? first : second, numbers));
        QCOMPARE(lab_->state(first), AssignmentState::agreed);

        // What gave way is neither lost nor held against its owner.
        QCOMPARE(lab_->book.find(dispute.truth.assignment)->state, AssignmentState::committed);
        QVERIFY(!lab_->asked(dispute.truth));
        QVERIFY(lab_->journal.tells("gave way to others'"));
        lab_->pass_ms(lab_->book.find(dispute.lie.assignment)->send_ms + 1'000);
        QCOMPARE(lab_->state(dispute.lie), AssignmentState::expired);
        const Grant third = lab_->take(one).at(0);
        lab_->tell(one, FakeLab::commitment(third, dispute.right));
        const bool again = lab_->asked(dispute.truth);
        QVERIFY(again || lab_->asked(third));
        QVERIFY(again ? upload(*dispute.honest, dispute.truth, dispute.right)
                      : upload(one, third, dispute.right));
        QCOMPARE(lab_->state(dispute.truth), AssignmentState::agreed);
        QVERIFY(dispute.plan->finished);
    }

    void nothing_gives_way_where_that_makes_too_little_room() {
        const Dispute dispute = disputed();
        lab_->board.make_room(output_bytes + 1);
        QCOMPARE(lab_->book.find(dispute.truth.assignment)->state, AssignmentState::returned);
    }

    void numbers_at_the_verifier_do_not_give_way() {
        make_lab(1);
        lab_->submit(std::make_shared<FakePlan>(1, DType::i32, edge), Policy::recompute);
        LiveComputer& honest = lab_->join();
        const Grant grant = lab_->take(honest).at(0);
        const Tensor numbers = FakeLab::honest(grant);
        lab_->tell(honest, FakeLab::commitment(grant, numbers));
        const Digest digest = tensor_digest(grant.key, numbers);
        const auto sent = uploads_->open(1, digest, *lab_->desk.find_upload(honest, digest), lab_->now_ms);
        sent->write_leaf(0, numbers.bytes());
        QCOMPARE(lab_->desk.take_upload(honest, sent->place(), *sent->take()), std::string());
        lab_->board.make_room(1);
        QCOMPARE(lab_->book.find(grant.assignment)->state, AssignmentState::returned);
        lab_->run();
        QCOMPARE(lab_->state(grant), AssignmentState::agreed);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestStalling)
#include "test_stalling.moc"
