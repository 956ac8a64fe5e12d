// The lab node's slow work: what takes long for one job holds up no other.
#include <QTest>

#include <chrono>
#include <semaphore>

#include "fake_lab.hpp"
#include "labcli/node/pool_workshop.hpp"

namespace goblin::lab {

namespace {

constexpr std::chrono::seconds long_enough(30);  // only for what never comes

// Its output is removed when the test lets it.
class SlowlyRemoved final : public FakePlan {
  public:
    SlowlyRemoved(std::binary_semaphore& begun, std::binary_semaphore& released)
        : FakePlan(1), begun_(begun), released_(released) {}
    void discard() override {
        begun_.release();
        released_.acquire();
    }

  private:
    std::binary_semaphore& begun_;
    std::binary_semaphore& released_;
};

}  // namespace

class TestPoolWorkshop : public QObject {
    Q_OBJECT

  private slots:
    void removing_an_output_holds_up_no_other_job() {
        LabThread thread;
        thread.start({[] {}, [] {}, [] { return false; }, [](const auto&) {}, [](const auto&) {}});
        PoolWorkshop workshop(thread, 1);
        std::binary_semaphore begun(0), released(0), prepared(0), finished(0);
        workshop.discard(std::make_shared<SlowlyRemoved>(begun, released));
        const bool removing = begun.try_acquire_for(long_enough);
        const auto other = std::make_shared<FakePlan>(1);
        workshop.prepare(other, 1, {0}, [&](const PrepareAnswer&) { prepared.release(); });
        workshop.finish(other, [&](const std::string&) { finished.release(); });
        const bool went_on = prepared.try_acquire_for(long_enough) && finished.try_acquire_for(long_enough);
        released.release();
        thread.stop();
        QVERIFY(removing && went_on);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestPoolWorkshop)
#include "test_pool_workshop.moc"
