// Threads for slow work: in its order, within a bound, and gone when their owner goes.
#include <QTest>

#include <memory>
#include <semaphore>
#include <vector>

#include "labcli/threads/work_pool.hpp"

namespace goblin::lab {

class TestWorkPool : public QObject {
    Q_OBJECT

    // Work that keeps a thread until it is released.
    std::binary_semaphore reached_{0};
    std::binary_semaphore released_{0};
    WorkPool::Work blocking() {
        return [this] {
            reached_.release();
            released_.acquire();
        };
    }

  private slots:
    void work_is_done_in_its_order() {
        std::vector<int> done;
        std::binary_semaphore last(0);
        WorkPool pool(1, 100);
        for (int i = 0; i < 10; ++i) pool.post([&, i] { done.push_back(i); });
        pool.post([&] { last.release(); });
        last.acquire();
        QCOMPARE(done, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    }

    void what_is_beyond_the_bound_is_refused_until_some_is_done() {
        std::binary_semaphore last(0);
        WorkPool pool(1, 2);
        QVERIFY(pool.offer(blocking()));
        reached_.acquire();
        QVERIFY(pool.offer([] {}));
        QVERIFY(pool.offer([&] { last.release(); }));
        QVERIFY(!pool.offer([] {}));
        released_.release();
        last.acquire();
        QVERIFY(pool.offer([] {}));
    }

    void nothing_is_left_when_it_ends() {
        auto kept = std::make_shared<int>(0);
        {
            WorkPool pool(1, 2);
            pool.post(blocking());
            reached_.acquire();
            pool.post([kept] {});
            released_.release();
        }
        QCOMPARE(kept.use_count(), 1L);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestWorkPool)
#include "test_work_pool.moc"
