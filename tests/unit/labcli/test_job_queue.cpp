// Which task comes next: order, locality, and tasks that wait for the volunteer that was drawn for them.
#include <QTest>

#include "labcli/schedule/job_queue.hpp"

namespace goblin::lab {

namespace {

bool anything(const OpenTask&) {
    return true;
}

uint64_t nowhere(const OpenTask&) {
    return 0;
}

JobQueue prepared_queue(uint64_t tasks) {
    JobQueue queue(tasks, {});
    for (const TaskNumber number : queue.take_numbers(tasks)) {
        PreparedTask task;
        task.number = number;
        queue.add_prepared(std::move(task));
    }
    return queue;
}

// As if a volunteer held it and one more were missing.
void give_to(JobQueue& queue, TaskNumber number, VolunteerId volunteer) {
    OpenTask& task = *queue.find(number);
    queue.begin(task, volunteer);
    task.claims.push_back(AssignmentId{static_cast<uint8_t>(number)});
    task.holders.insert(volunteer);
    queue.queue(number, 1);
}

}  // namespace

class TestJobQueue : public QObject {
    Q_OBJECT

  private slots:
    void tasks_come_in_the_order_of_their_numbers() {
        JobQueue queue = prepared_queue(4);
        for (TaskNumber expected = 0; expected < 4; ++expected)
            QCOMPARE(queue.take_fresh(anything, nowhere), std::optional(expected));
        QCOMPARE(queue.take_fresh(anything, nowhere), std::nullopt);
    }

    void accepted_tasks_are_not_prepared_again() {
        JobQueue queue(5, {1, 3, 3});
        QCOMPARE(queue.accepted(), uint64_t{2});
        QCOMPARE(queue.take_numbers(10), (std::vector<TaskNumber>{0, 2, 4}));
        QCOMPARE(queue.unprepared(), uint64_t{0});
    }

    void a_task_whose_inputs_are_held_comes_first() {
        JobQueue queue = prepared_queue(40);
        const auto locality = [](const OpenTask& task) {
            return task.prepared.number == 7   ? uint64_t{2}
                   : task.prepared.number == 5 ? uint64_t{1}
                                               : uint64_t{0};
        };
        for (const TaskNumber expected : {7, 5, 0, 1})
            QCOMPARE(queue.take_fresh(anything, locality), std::optional<TaskNumber>(expected));
    }

    void an_eligible_task_is_found_however_far_behind_it_waits() {
        JobQueue queue = prepared_queue(500);
        const auto eligible = [](const OpenTask& task) { return task.prepared.number == 499; };
        QCOMPARE(queue.take_fresh(eligible, nowhere), std::optional<TaskNumber>(499));
        QCOMPARE(queue.take_fresh(eligible, nowhere), std::nullopt);
    }

    void a_task_that_comes_back_is_next() {
        JobQueue queue = prepared_queue(10);
        QCOMPARE(queue.take_fresh(anything, nowhere), std::optional<TaskNumber>(0));
        QCOMPARE(queue.take_fresh(anything, nowhere), std::optional<TaskNumber>(1));
        queue.find(0)->holders.insert(1);
        queue.queue(0, 1);
        QCOMPARE(queue.take_fresh(anything, nowhere), std::optional<TaskNumber>(0));
    }

    void a_task_that_lacks_a_replica_waits_for_whoever_is_drawn() {
        JobQueue queue = prepared_queue(3);
        for (TaskNumber number = 0; number < 3; ++number) {
            (void)queue.take_fresh(anything, nowhere);
            give_to(queue, number, 1);
        }
        QCOMPARE(queue.waiting(1), uint64_t{3});
        QCOMPARE(queue.undrawn(), (std::vector<TaskNumber>{0, 1, 2}));
        QCOMPARE(queue.take_drawn(2, anything), std::nullopt);
        queue.draw(1, 2, 1000);
        queue.draw(0, 2, 1000);
        queue.draw(2, 3, 1000);
        QVERIFY(queue.undrawn().empty());
        QCOMPARE(queue.take_drawn(2, anything), std::optional<TaskNumber>(1));
        QCOMPARE(queue.take_drawn(2, anything), std::optional<TaskNumber>(0));
        QCOMPARE(queue.take_drawn(2, anything), std::nullopt);
        QCOMPARE(queue.waiting(1), uint64_t{1});
        QCOMPARE(queue.begun(1), uint64_t{3});
    }

    void another_can_be_drawn_instead() {
        JobQueue queue = prepared_queue(1);
        (void)queue.take_fresh(anything, nowhere);
        give_to(queue, 0, 1);
        queue.draw(0, 2, 1000);
        queue.draw_again(0);
        QCOMPARE(queue.take_drawn(2, anything), std::nullopt);
        queue.draw(0, 3, 1000);
        QCOMPARE(queue.window(), size_t{1});
        QCOMPARE(queue.take_drawn(3, anything), std::optional<TaskNumber>(0));
        QCOMPARE(queue.window(), size_t{0});
    }

    void what_is_accepted_waits_for_nobody() {
        JobQueue queue = prepared_queue(2);
        for (TaskNumber number = 0; number < 2; ++number) {
            (void)queue.take_fresh(anything, nowhere);
            give_to(queue, number, 1);
        }
        queue.draw(0, 2, 1000);
        queue.accept(0);
        queue.accept(1);
        QCOMPARE(queue.window(), size_t{0});
        QCOMPARE(queue.take_drawn(2, anything), std::nullopt);
        QVERIFY(queue.undrawn().empty() && queue.drawn().empty());
    }

    void only_an_accepted_task_counts() {
        JobQueue queue = prepared_queue(2);
        QVERIFY(!queue.complete());
        queue.accept(1);
        QCOMPARE(queue.accepted(), uint64_t{1});
        QVERIFY(queue.is_accepted(1) && !queue.is_accepted(0));
        QVERIFY(queue.find(1) == nullptr);
        queue.accept(0);
        QVERIFY(queue.complete());
    }

    void a_job_without_tasks_is_complete() { QVERIFY(JobQueue(0, {}).complete()); }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestJobQueue)
#include "test_job_queue.moc"
