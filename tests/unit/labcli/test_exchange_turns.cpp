// Turns of exchanges: one computer's wait for each other, another's don't wait for them.
#include <QTest>

#include <array>
#include <stdexcept>
#include <vector>

#include "labcli/node/exchange_turns.hpp"

namespace goblin::lab {

class TestExchangeTurns : public QObject {
    Q_OBJECT

    using Entry = ExchangeTurns::Entry;

  private slots:
    void init() {
        queue_.clear();
        ran_.clear();
        full_ = false;
    }

    void of_one_computer_one_exchange_is_in_progress() {
        for (int i = 0; i < 3; ++i) QVERIFY(turns_.enter(greedy_, turn(i)) == Entry::taken);
        QCOMPARE(queue_.size(), size_t{1});
        run_one();
        QCOMPARE(ran_, (std::vector<int>{0}));
        QCOMPARE(queue_.size(), size_t{1});
        run_all();
        QCOMPARE(ran_, (std::vector<int>{0, 1, 2}));
    }

    void another_computer_waits_for_one_exchange_of_it_at_most() {
        for (int i = 0; i < 3; ++i) QVERIFY(turns_.enter(greedy_, turn(i)) == Entry::taken);
        QVERIFY(turns_.enter(honest_, turn(100)) == Entry::taken);
        run_all();
        QCOMPARE(ran_, (std::vector<int>{0, 100, 1, 2}));
    }

    void who_sends_more_at_once_than_the_limit_is_refused_until_one_is_through() {
        const int limit = static_cast<int>(ExchangeTurns::most_at_once);
        for (int i = 0; i < limit; ++i) QVERIFY(turns_.enter(greedy_, turn(i)) == Entry::taken);
        QVERIFY(turns_.enter(greedy_, turn(limit)) == Entry::too_many_of_one);
        QVERIFY(turns_.enter(honest_, turn(100)) == Entry::taken);
        run_one();
        QVERIFY(turns_.enter(greedy_, turn(limit)) == Entry::taken);
        run_all();
        QCOMPARE(ran_.size(), static_cast<size_t>(limit) + 2);
        QVERIFY(turns_.enter(greedy_, turn(0)) == Entry::taken);
        run_all();
    }

    void a_turn_that_throws_does_not_hold_up_the_next() {
        QVERIFY(turns_.enter(greedy_, [] { throw std::runtime_error("broken"); }) == Entry::taken);
        QVERIFY(turns_.enter(greedy_, turn(1)) == Entry::taken);
        QVERIFY_EXCEPTION_THROWN(run_one(), std::runtime_error);
        run_all();
        QCOMPARE(ran_, (std::vector<int>{1}));
    }

    void while_the_lab_threads_queue_is_full_newcomers_are_refused_and_those_at_hand_go_on() {
        for (int i = 0; i < 2; ++i) QVERIFY(turns_.enter(greedy_, turn(i)) == Entry::taken);
        full_ = true;
        QVERIFY(turns_.enter(honest_, turn(100)) == Entry::too_many);
        run_all();
        QCOMPARE(ran_, (std::vector<int>{0, 1}));
        full_ = false;
        QVERIFY(turns_.enter(honest_, turn(101)) == Entry::taken);
        run_all();
        QCOMPARE(ran_.back(), 101);
    }

    void after_closing_nothing_waits() {
        auto kept = std::make_shared<int>(0);
        ExchangeTurns turns(offer_, post_);
        QVERIFY(turns.enter(greedy_, [] {}) == Entry::taken);
        QVERIFY(turns.enter(greedy_, [kept] {}) == Entry::taken);
        turns.close();
        QCOMPARE(kept.use_count(), 1L);
        run_all();
        QVERIFY(turns.enter(greedy_, [kept] {}) == Entry::taken);
        QCOMPARE(kept.use_count(), 1L);
        QVERIFY(queue_.empty());
    }

  private:
    ExchangeTurns::Turn turn(int number) {
        return [this, number] { ran_.push_back(number); };
    }
    void run_one() {
        const ExchangeTurns::Turn first = std::move(queue_.front());
        queue_.pop_front();
        first();
    }
    void run_all() {
        while (!queue_.empty()) run_one();
    }

    std::deque<ExchangeTurns::Turn> queue_;
    std::vector<int> ran_;
    bool full_ = false;
    const std::function<void(ExchangeTurns::Turn)> post_ = [this](ExchangeTurns::Turn next) {
        queue_.push_back(std::move(next));
    };
    const std::function<bool(ExchangeTurns::Turn)> offer_ = [this](ExchangeTurns::Turn next) {
        if (!full_) queue_.push_back(std::move(next));
        return !full_;
    };
    ExchangeTurns turns_{offer_, post_};
    const Digest greedy_ = sha256(std::array<uint8_t, 1>{1});
    const Digest honest_ = sha256(std::array<uint8_t, 1>{2});
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestExchangeTurns)
#include "test_exchange_turns.moc"
