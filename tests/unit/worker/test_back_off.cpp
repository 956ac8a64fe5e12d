// Waiting longer after every failure, never in step, and as long as asked.
#include <QtTest>

#include "app/worker/back_off.hpp"

using goblin::worker::BackOff;

class TestBackOff : public QObject {
    Q_OBJECT
  private slots:
    void waits_double_from_a_second_to_five_minutes() {
        BackOff back_off([] { return ~uint64_t{0} / 2 * 2; });
        uint64_t step = 1'000;
        for (int i = 0; i < 100; ++i) {
            const uint64_t wait = back_off.next_ms();
            QVERIFY(wait >= step / 2 && wait <= step);
            step = std::min<uint64_t>(2 * step, 300'000);
        }
    }
    void two_waits_are_hardly_ever_the_same() {
        BackOff one;
        BackOff other;
        int equal = 0;
        for (int i = 0; i < 20; ++i) equal += one.next_ms() == other.next_ms() ? 1 : 0;
        QVERIFY(equal < 10);
    }
    void what_the_peer_asks_for_is_a_minimum_of_at_most_a_day() {
        BackOff back_off;
        QVERIFY(back_off.next_ms(60'000) >= 60'000);
        QCOMPARE(back_off.next_ms(UINT64_MAX), uint64_t{86'400'000});
    }
    void success_begins_anew() {
        BackOff back_off;
        for (int i = 0; i < 10; ++i) back_off.next_ms();
        back_off.succeeded();
        QVERIFY(back_off.next_ms() <= 1'000);
    }
};

QTEST_APPLESS_MAIN(TestBackOff)
#include "test_back_off.moc"
