// Uploads in memory: kept while there is room, and who gives way when there isn't.
#include <QTest>

#include "core/work/leaf_stream.hpp"
#include "labcli/node/uploads.hpp"
#include "tests/support/error_of.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t leaves = 4;
constexpr uint64_t size_bytes = leaves * leaf_size_bytes;
constexpr uint64_t room_for = 3;  // such uploads
constexpr uint64_t start_ms = 1'000'000;
constexpr uint64_t leaf_ms = leaf_size_bytes * 1000 / limits::slow_link_rate;
constexpr uint64_t minute_ms = 60'000;

Digest digest_of(uint8_t number) {
    Digest digest;
    digest.bytes.fill(number);
    return digest;
}

}  // namespace

class TestUploads : public QObject {
    Q_OBJECT

    std::unique_ptr<Uploads> uploads_;
    Uploads::MakeRoom make_room_;
    std::set<AssignmentId> over_;
    uint64_t now_ms_ = start_ms;

    static ExchangeDesk::UploadPlace place(uint8_t number) {
        ExchangeDesk::UploadPlace place;
        place.assignment[0] = number;
        place.outputs = {0};
        place.spec = {DType::u8, Shape{static_cast<int64_t>(size_bytes)}};
        place.asked = true;
        return place;
    }
    // Each computer uploads one output; both have the same number.
    std::shared_ptr<Upload> open(uint8_t number) {
        return uploads_->open(number, digest_of(number), place(number), now_ms_);
    }
    static void write(Upload& upload, uint64_t count) {
        const std::vector<std::byte> leaf(leaf_size_bytes);
        for (uint64_t i = 0; i < count; ++i) upload.write_leaf(upload.leaves_held(), leaf);
    }
    // The lab's ticks.
    void pass(uint64_t ms) {
        for (const uint64_t end = now_ms_ + ms; now_ms_ < end;
             now_ms_ += std::min<uint64_t>(1'000, end - now_ms_))
            uploads_->sweep([this](const AssignmentId& id) { return !over_.contains(id); }, now_ms_);
    }

  private slots:
    void init() {
        uploads_ =
            std::make_unique<Uploads>(room_for * size_bytes, [this](uint64_t bytes) { make_room_(bytes); });
        make_room_ = [](uint64_t) {};
        over_.clear();
        now_ms_ = start_ms;
    }

    void two_requests_that_complete_an_upload_together_take_its_numbers_once() {
        const auto first = open(1);
        const auto second = open(1);
        QVERIFY(first == second);
        write(*first, leaves);
        const std::optional<ArrivedOutput> taken = first->take();
        QVERIFY(taken && taken->tensor.size_bytes() == size_bytes);
        QVERIFY(!second->take());
        VERIFY_REFUSED(second->write_leaf(leaves, {}), "one that is over");
    }

    void numbers_that_were_taken_keep_their_memory_until_nobody_needs_them() {
        std::vector<std::optional<ArrivedOutput>> taken;
        for (uint8_t number = 1; number <= room_for; ++number) {
            const auto upload = open(number);
            write(*upload, leaves);
            taken.push_back(upload->take());
            uploads_->close(number, digest_of(number));
        }
        QVERIFY(!open(9));
        taken.pop_back();
        QVERIFY(open(9));
    }

    void an_upload_that_is_cut_for_two_minutes_goes_on_where_it_was() {
        write(*open(1), 2);
        pass(2 * minute_ms);
        QCOMPARE(open(1)->leaves_held(), uint64_t{2});
        pass(limits::upload_idle_ms - 3 * minute_ms);
        QCOMPARE(open(1)->leaves_held(), uint64_t{2});
        pass(limits::upload_idle_ms + minute_ms);
        QCOMPARE(open(1)->leaves_held(), uint64_t{0});
    }

    void a_slow_upload_keeps_what_arrived_while_its_memory_is_not_needed() {
        const auto slow = open(1);
        for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
            pass(30 * minute_ms);
            write(*slow, 1);
        }
        QVERIFY(slow->take());
    }

    void an_upload_whose_assignment_is_over_gives_its_memory_back_though_it_is_still_written() {
        std::vector<std::shared_ptr<Upload>> held;  // as by requests that never end
        for (uint8_t number = 1; number <= room_for; ++number) held.push_back(open(number));
        QVERIFY(!open(9));
        over_.insert(place(1).assignment);
        pass(1'000);
        QVERIFY(!held[0]->wanted());
        QVERIFY(held[1]->wanted());
        QVERIFY(open(9));
    }

    void slow_uploads_give_way_when_others_need_their_memory() {
        std::vector<std::shared_ptr<Upload>> slow;
        for (uint8_t number = 1; number <= room_for; ++number) slow.push_back(open(number));
        write(*slow[1], 2);
        write(*slow[2], 1);
        pass(minute_ms);
        QVERIFY(open(9));
        QVERIFY2(!slow[0]->wanted() && slow[1]->wanted() && slow[2]->wanted(), "the slowest first");
        QVERIFY(open(10));
        QVERIFY(slow[1]->wanted() && !slow[2]->wanted());
        VERIFY_REFUSED(write(*slow[0], 1), "one that is over");
        QVERIFY(!slow[0]->take());
    }

    void an_upload_as_fast_as_durations_allow_for_gives_way_to_nobody() {
        std::vector<std::shared_ptr<Upload>> fast;
        for (uint8_t number = 1; number <= room_for; ++number) fast.push_back(open(number));
        for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
            pass(leaf_ms);
            QVERIFY(!open(9));
            for (const auto& upload : fast) write(*upload, 1);
        }
        for (const auto& upload : fast) QVERIFY(upload->take());
    }

    void who_gave_way_comes_again_from_the_start_and_pushes_nobody_out() {
        for (uint8_t number = 1; number <= room_for; ++number) open(number);
        pass(minute_ms);
        std::vector<std::shared_ptr<Upload>> honest;
        for (uint8_t number = 11; number < 11 + room_for; ++number) honest.push_back(open(number));
        for (uint8_t number = 1; number <= room_for; ++number) QVERIFY(!open(number));
        pass(minute_ms);  // the honest ones are late, too, by now
        for (uint8_t number = 1; number <= room_for; ++number) QVERIFY(!open(number));
        for (const auto& upload : honest) QVERIFY(upload->wanted());
        write(*honest[0], leaves);
        QVERIFY(honest[0]->take());
        uploads_->close(11, digest_of(11));
        QCOMPARE(open(1)->leaves_held(), uint64_t{0});
        // It is as late as it was: the next one that comes may have its memory.
        QVERIFY(open(12) && open(20));
        QVERIFY(!open(1));
    }

    void numbers_that_wait_for_somebody_else_give_way_where_late_uploads_do_not_make_enough_room() {
        std::vector<ArrivedOutput> waiting;
        for (uint8_t number = 1; number <= 2; ++number) {
            const auto upload = open(number);
            write(*upload, leaves);
            waiting.push_back(*upload->take());
            uploads_->close(number, digest_of(number));
        }
        const auto late = open(3);
        pass(minute_ms);
        std::vector<uint64_t> asked_for;
        make_room_ = [&](uint64_t bytes) {
            asked_for.push_back(bytes);
            waiting.pop_back();
        };
        QVERIFY(open(4));
        QVERIFY2(asked_for.empty() && !late->wanted(), "who is late comes first");
        QVERIFY(open(5));
        QCOMPARE(asked_for, std::vector<uint64_t>{size_bytes});
        QCOMPARE(waiting.size(), size_t{1});
        QVERIFY2(!open(3), "who gave way has nobody else give way");
        QCOMPARE(asked_for.size(), size_t{1});
    }

    void nobody_gives_way_where_that_makes_too_little_room() {
        const auto kept = open(1);
        write(*kept, leaves);
        const std::optional<ArrivedOutput> being_verified = kept->take();
        uploads_->close(1, digest_of(1));
        const auto slow = open(2);
        pass(minute_ms);
        ExchangeDesk::UploadPlace large = place(9);
        large.outputs = {0, 1, 2};
        QVERIFY(!uploads_->open(9, digest_of(9), large, now_ms_));
        QVERIFY(slow->wanted());
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestUploads)
#include "test_uploads.moc"
