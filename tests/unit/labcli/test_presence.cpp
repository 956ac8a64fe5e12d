// What a plan is made for: computers at hand, whatever they claim or seem to be.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestPresence : public QObject {
    Q_OBJECT

  private slots:
    void nobody_can_make_plans_absurd_by_what_it_claims() {
        FakeLab lab;
        LiveComputer& usual = lab.join();
        LiveComputer& tiny = lab.join();
        LiveComputer& snail = lab.join();
        lab.exchange(usual, lab.request(usual, 0));
        ExchangeRequest request = lab.request(tiny, 0);
        request.want.devices[0].memory_bytes = 1;
        lab.exchange(tiny, request);
        request = lab.request(snail, 0);
        request.want.devices[0].speed_flops = 1;
        lab.exchange(snail, request);
        const Capacity capacity = lab.board.presence().capacity();
        QCOMPARE(capacity.computers, uint64_t{2});
        QCOMPARE(capacity.smallest_memory_bytes, uint64_t{1} << 30);
        QCOMPARE(capacity.slowest_flops, uint64_t{1'000'000'000});
    }

    void a_computer_that_slept_over_a_task_does_not_count_as_slow_for_ever() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3, DType::i32, 64, 64), Policy::recompute);
        LiveComputer& laptop = lab.join();
        const std::vector<Grant> grants = lab.take(laptop);
        lab.pass_ms(3'600'000);
        lab.do_honestly(laptop, grants);
        QVERIFY(lab.board.presence().capacity().slowest_flops >= 1'000'000'000);
    }

    void a_thousand_tiny_tasks_say_nothing_about_slowness() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(100), Policy::recompute);
        LiveComputer& computer = lab.join_proven();
        const uint64_t before = (lab.take(computer, 0), computer.speed_flops());
        for (int i = 0; i < 50; ++i) {
            const std::vector<Grant> grants = lab.take(computer, 1);
            lab.now_ms += 20;  // there and back
            lab.do_honestly(computer, grants);
        }
        QVERIFY(computer.speed_flops() >= before);
    }

    void a_slow_computer_is_known_as_slow() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(3, DType::i32, 64, 64), Policy::recompute);
        LiveComputer& computer = lab.join();
        const std::vector<Grant> grants = lab.take(computer);
        lab.pass_ms(10'000);
        lab.do_honestly(computer, grants);
        QCOMPARE(computer.record.speed_flops, uint64_t{2 * 64 * 64 * 64 / 10});
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestPresence)
#include "test_presence.moc"
