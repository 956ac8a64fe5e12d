// What a thread pool promises.
#include <QtTest>
#include <cfenv>
#include <set>

#include "core/engine/cpu/thread_pool.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

class TestThreadPool : public QObject {
    Q_OBJECT
  private slots:
    void every_item_is_done_once_data() {
        QTest::addColumn<unsigned>("threads");
        for (const unsigned threads : {1u, 2u, 3u, 8u}) QTest::addRow("%u threads", threads) << threads;
    }
    void every_item_is_done_once() {
        QFETCH(unsigned, threads);
        ThreadPool pool(threads);
        for (const int64_t count : {0, 1, 2, 7, 1000}) {
            std::vector<std::atomic<int>> done(static_cast<size_t>(count));
            pool.for_each(count, [&](int64_t item, unsigned) noexcept { ++done[static_cast<size_t>(item)]; });
            for (const auto& times : done) QCOMPARE(times.load(), 1);
        }
    }
    void threads_are_numbered_below_their_count() {
        ThreadPool pool(4);
        QCOMPARE(pool.threads(), 4u);
        std::atomic<unsigned> largest{0};
        pool.for_each(10'000, [&](int64_t, unsigned thread) noexcept {
            unsigned before = largest;
            while (before < thread && !largest.compare_exchange_weak(before, thread)) {
            }
        });
        QVERIFY(largest < 4u);
    }
    void no_two_items_share_a_thread_number_at_once() {
        ThreadPool pool(4);
        std::array<std::atomic<bool>, 4> taken{};
        std::atomic<bool> shared{false};
        pool.for_each(10'000, [&](int64_t, unsigned thread) noexcept {
            if (taken[thread].exchange(true)) shared = true;
            taken[thread] = false;
        });
        QVERIFY(!shared);
    }
    void one_thread_is_the_callers_own() {
        ThreadPool pool(1);
        std::set<std::thread::id> seen;
        pool.for_each(100, [&](int64_t, unsigned) noexcept { seen.insert(std::this_thread::get_id()); });
        QVERIFY(seen == std::set{std::this_thread::get_id()});
    }
    void the_others_help() {
        ThreadPool pool(2);
        // Each of the two items waits until the other has begun: one thread alone would never end.
        std::atomic<int> begun{0};
        pool.for_each(2, [&](int64_t, unsigned) noexcept {
            ++begun;
            while (begun < 2) std::this_thread::yield();
        });
        QCOMPARE(begun.load(), 2);
    }
    void every_thread_computes_in_the_contracts_environment() {
        ThreadPool pool(2);
        std::fesetround(FE_DOWNWARD);
        std::atomic<int> begun{0};
        std::atomic<int> to_nearest{0};
        pool.for_each(2, [&](int64_t, unsigned) noexcept {
            if (std::fegetround() == FE_TONEAREST) ++to_nearest;
            ++begun;
            while (begun < 2) std::this_thread::yield();
        });
        const int callers = std::fegetround();
        std::fesetround(FE_TONEAREST);
        QCOMPARE(to_nearest.load(), 2);
        QCOMPARE(callers, FE_DOWNWARD);
    }
    void a_number_of_threads_that_makes_no_sense_is_refused() {
        VERIFY_REFUSED(ThreadPool(0), "expected 1 to 1024 threads, found 0");
        VERIFY_REFUSED(ThreadPool(1025), "expected 1 to 1024 threads, found 1025");
    }
};

QTEST_APPLESS_MAIN(TestThreadPool)
#include "test_thread_pool.moc"
