// The lab's thread: what becomes of turns that throw, of those that wait too long, and of those that watch.
#include <QTest>

#include <atomic>
#include <semaphore>
#include <stdexcept>

#include "labcli/node/lab_thread.hpp"
#include "tests/support/error_of.hpp"

namespace goblin::lab {

class TestLabThread : public QObject {
    Q_OBJECT

    std::unique_ptr<LabThread> thread_;
    // On the lab's thread.
    int changes_ = 0;  // of the turn at hand
    int kept_ = 0;
    std::atomic<int> broken_ = 0;
    std::atomic<int> diverged_ = 0;

    void change_and_throw() {
        ++changes_;
        throw std::runtime_error("half way");
    }
    int kept() {
        return thread_->call([this] { return kept_; });
    }

  private slots:
    void init() {
        changes_ = kept_ = 0;
        broken_ = diverged_ = 0;
        thread_ = std::make_unique<LabThread>();
        thread_->start({.tick = [] {},
                        .end_turn = [this] { kept_ += std::exchange(changes_, 0); },
                        .drop_turn = [this] { return std::exchange(changes_, 0) != 0; },
                        .broken = [this](const std::string&) { ++broken_; },
                        .diverged = [this](const std::string&) { ++diverged_; }});
    }
    void cleanup() { thread_.reset(); }

    void what_a_turn_changed_is_kept_when_it_ends() {
        thread_->call([this] { changes_ += 2; });
        QCOMPARE(kept(), 2);
    }

    void a_turn_that_throws_before_it_changed_anything_is_lost_and_the_others_go_on() {
        thread_->post([] { throw std::runtime_error("at once"); });
        thread_->call([this] { ++changes_; });
        QCOMPARE(kept(), 1);
        QCOMPARE(broken_.load(), 1);
        QCOMPARE(diverged_.load(), 0);
    }

    void what_a_call_throws_is_thrown_to_the_caller_and_is_no_fault() {
        QVERIFY_EXCEPTION_THROWN(thread_->call([] { throw std::runtime_error("wrong number"); }),
                                 std::runtime_error);
        QCOMPARE(kept(), 0);
        QCOMPARE(broken_.load(), 0);
    }

    void a_turn_that_throws_after_it_changed_something_is_the_last() {
        std::atomic<bool> ran = false;
        std::binary_semaphore both(0);
        thread_->post([this, &both] {
            both.acquire();
            change_and_throw();
        });
        thread_->post([&] { ran = true; });
        both.release();
        VERIFY_REFUSED(kept(), "is stopping");
        thread_->stop();
        QVERIFY(!ran);
        QCOMPARE(kept_, 0);
        QCOMPARE(diverged_.load(), 1);
    }

    void a_call_that_throws_after_it_changed_something_is_the_last_too() {
        QVERIFY_EXCEPTION_THROWN(thread_->call([this] { change_and_throw(); }), std::runtime_error);
        VERIFY_REFUSED(kept(), "is stopping");
        thread_->stop();
        QCOMPARE(kept_, 0);
        QCOMPARE(diverged_.load(), 1);
    }

    void requests_beyond_the_limit_are_refused_until_some_are_through() {
        std::binary_semaphore blocked(0);
        std::binary_semaphore reached(0);
        thread_->post([&] {
            reached.release();
            blocked.acquire();
        });
        reached.acquire();
        for (size_t i = 0; i < LabThread::most_waiting; ++i) QVERIFY(thread_->offer([this] { ++changes_; }));
        QVERIFY(!thread_->offer([] {}));
        thread_->post([this] { ++changes_; });  // what the lab goes on with isn't refused
        blocked.release();
        QCOMPARE(kept(), static_cast<int>(LabThread::most_waiting) + 1);
        QVERIFY(thread_->offer([] {}));
    }

    void who_watches_is_told_after_the_turn_that_makes_it_true() {
        std::atomic<bool> due = false;
        thread_->post([&] { due = true; });
        thread_->wait_until([&] { return due.load(); });
        QVERIFY(due);
    }

    void who_watches_is_let_go_when_the_thread_ends() {
        thread_->post([this] {
            thread_->post([this] { change_and_throw(); });  // behind the one that watches
        });
        VERIFY_REFUSED(thread_->wait_until([] { return false; }), "is stopping");
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestLabThread)
#include "test_lab_thread.moc"
