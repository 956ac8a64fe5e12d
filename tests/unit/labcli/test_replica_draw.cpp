// Who gets a task's further replicas: drawn among all at hand, so that a group that conspires is together no
// more often than its number says, whatever it does to come first.
#include <QTest>

#include "fake_lab.hpp"
#include "tests/support/hardly_ever.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::lab {

namespace {

constexpr size_t volunteers = 10;
constexpr size_t conspirators = 3;

// Exchanges without end. The first three conspire: they ask `haste` times as often, claim the blobs they know
// their friends to have, and commit at once; the others compute for one round. All tell the truth, so that
// nobody's quota shrinks: counted is who was together.
class Crowd {
  public:
    Crowd(uint64_t seed, uint64_t tasks, int haste)
        : lab_(seed), job_(lab_.submit(std::make_shared<FakePlan>(tasks, DType::i32, 4), Policy::redundant)) {
        for (size_t i = 0; i < volunteers; ++i) computers_.push_back(&lab_.join_proven());
        // Everybody is there before the job begins, and hears of it in this order: conspirators first.
        for (LiveComputer* computer : computers_) {
            ExchangeRequest request = lab_.request(*computer, 1);
            request.want.devices[0].memory_bytes = 1;  // takes nothing now
            lab_.exchange(*computer, request);
            computer->devices[0].memory_bytes = uint64_t{1} << 30;
        }
        for (int round = 0; round < 100'000 && !is_over(job_.record.state); ++round) {
            for (int i = 0; i < haste; ++i)
                for (size_t each = 0; each < conspirators; ++each) step(*computers_[each], 256);
            for (size_t each = conspirators; each < volunteers; ++each) step(*computers_[each], 4);
            lab_.pass_ms(100);
        }
    }

    bool done() const { return job_.record.state == JobState::done; }
    // Of the tasks, how many were computed by two of the group.
    uint64_t together() const {
        std::map<TaskNumber, int> of_group;
        for (const auto& [number, each] : lab_.journal.assignments)
            of_group[each.task] += each.state == AssignmentState::agreed && each.volunteer <= conspirators;
        return static_cast<uint64_t>(std::count_if(of_group.begin(), of_group.end(),
                                                   [](const auto& entry) { return entry.second == 2; }));
    }

  private:
    void step(LiveComputer& computer, uint64_t most) {
        for (const AssignmentId& id : computer.open) {
            const Assignment& assignment = *lab_.book.find(id);
            if (assignment.asked_to_send && assignment.state == AssignmentState::committed)
                grants_.at(id).second = true;
        }
        std::vector<Result> results;
        for (const AssignmentId& id : computer.open) {
            const Assignment& assignment = *lab_.book.find(id);
            auto& [grant, sends] = grants_.at(id);
            if (assignment.state == AssignmentState::issued)
                results.push_back(FakeLab::commitment(grant, FakeLab::honest(grant)));
            else if (sends && assignment.state == AssignmentState::committed)
                results.push_back(FakeLab::data(grant, FakeLab::honest(grant)));
        }
        ExchangeRequest request = lab_.request(computer, most, std::move(results));
        for (const auto& [id, known] : grants_)
            if (request.want.blobs_added.size() < 16)
                request.want.blobs_added.push_back(known.first.task.inputs[0].digest);
        const std::optional<ExchangeReply> reply = lab_.exchange(computer, std::move(request));
        for (const Grant& grant : reply.value().tasks) grants_.try_emplace(grant.assignment, grant, false);
    }

    FakeLab lab_;
    Job& job_;
    std::vector<LiveComputer*> computers_;
    std::map<AssignmentId, std::pair<Grant, bool>> grants_;
};

}  // namespace

class TestReplicaDraw : public QObject {
    Q_OBJECT

  private slots:
    // Of all pairs among 10, 3 make 3 · 2 / (10 · 9): one in 15. The rate that is printed, c² for c = 0.3, is
    // 9 %.
    void conspirators_are_together_no_more_often_than_their_share_of_pairs_data() {
        QTest::addColumn<int>("haste");
        QTest::addColumn<uint64_t>("tasks");
        for (const int haste : {1, 5, 50}) {
            QTest::addRow("asking %d times as often, 3,000 tasks", haste) << haste << uint64_t{3000};
            QTest::addRow("asking %d times as often, 300 tasks", haste) << haste << uint64_t{300};
        }
    }
    void conspirators_are_together_no_more_often_than_their_share_of_pairs() {
        QFETCH(int, haste);
        QFETCH(uint64_t, tasks);
        const uint64_t seed = test::printed_seed();
        const Crowd crowd(seed, tasks, haste);
        QVERIFY(crowd.done());
        const uint64_t bound = test::hardly_ever(tasks, tasks > 1000 ? 1.0 / 15 : 0.09);
        QVERIFY2(crowd.together() < bound, qPrintable(QString("%1 of %2 tasks, expected fewer than %3")
                                                          .arg(crowd.together())
                                                          .arg(tasks)
                                                          .arg(bound)));
    }

    void a_task_waits_for_whoever_is_drawn_however_often_others_ask() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& first = lab.join_proven();
        std::vector<LiveComputer*> others = {&lab.join_proven(), &lab.join_proven(), &lab.join_proven()};
        be_at_hand(lab, first, others);
        QCOMPARE(lab.take(first).size(), size_t{1});
        // One of them has it when it asks; the draw was made before.
        const VolunteerId drawn = drawn_for(lab, 0);
        for (int i = 0; i < 50; ++i)
            for (LiveComputer* other : others)
                if (other->record.volunteer != drawn) QVERIFY(lab.take(*other).empty());
        QCOMPARE(lab.take(*lab.contributors.computer(drawn)).size(), size_t{1});
    }

    void who_has_gone_is_not_waited_for() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& first = lab.join_proven();
        LiveComputer& gone = lab.join_proven();
        be_at_hand(lab, first, {&gone});
        QCOMPARE(lab.take(first).size(), size_t{1});
        QCOMPARE(drawn_for(lab, 0), gone.record.volunteer);
        lab.pass_ms(5'000);
        LiveComputer& other = lab.join_proven();
        QCOMPARE(lab.take(other).size(), size_t{1});
    }

    void who_wants_nothing_more_is_not_waited_for() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& first = lab.join_proven();
        LiveComputer& paused = lab.join_proven();
        LiveComputer& other = lab.join_proven();
        be_at_hand(lab, first, {&paused});
        QCOMPARE(lab.take(first).size(), size_t{1});
        QCOMPARE(drawn_for(lab, 0), paused.record.volunteer);
        lab.exchange(paused, lab.request(paused, 0));
        lab.pass_ms(500);
        QCOMPARE(lab.take(other).size(), size_t{1});
    }

    void who_computes_something_else_is_waited_for_as_long_as_a_task_would_take_it() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1), Policy::recompute);
        lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
        LiveComputer& busy = lab.join();
        const Grant slow = lab.take(busy).at(0);
        LiveComputer& first = lab.join_proven();
        LiveComputer& other = lab.join_proven();
        lab.exchange(busy, lab.request(busy, 1));
        QCOMPARE(lab.take(first).size(), size_t{1});
        for (uint64_t passed_ms = 0; passed_ms < slow.duration_ms - 2'000; passed_ms += 1'000) {
            QVERIFY(lab.take(other).empty());
            lab.exchange(busy, lab.request(busy, 1));
            lab.pass_ms(1'000);
        }
        lab.pass_ms(5'000);
        QCOMPARE(lab.take(other).size(), size_t{1});
    }

    void who_is_slower_than_most_is_drawn_less_often() {
        int slow_drawn = 0;
        constexpr int tries = 400;
        for (uint64_t seed = 0; seed < tries; ++seed) {
            FakeLab lab(seed);
            lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
            LiveComputer& first = lab.join_proven();
            std::vector<LiveComputer*> others = {&lab.join_proven(), &lab.join_proven(), &lab.join_proven()};
            others[0]->record.speed_flops = 1'000'000'000;  // a tenth of the others
            others[1]->record.speed_flops = 1'000'000'000'000'000;
            be_at_hand(lab, first, others);
            QCOMPARE(lab.take(first).size(), size_t{1});
            slow_drawn += drawn_for(lab, 0) == others[0]->record.volunteer;
        }
        // One in 21; seeds are fixed.
        QVERIFY2(slow_drawn > 5 && slow_drawn < 40, qPrintable(QString::number(slow_drawn)));
    }

    void who_came_by_another_invitation_is_drawn_rather() {
        const int other = drawn_with_another_invitation(200, 1);
        // Three in four; seeds are fixed.
        QVERIFY2(other > 130 && other < 170, qPrintable(QString::number(other)));
    }

    void an_invitation_of_ones_own_no_more_than_doubles_the_chance() {
        // Else a conspirator with a link of its own would get most of its friend's tasks where the honest
        // share one: one in ten would be drawn without preference.
        const int other = drawn_with_another_invitation(400, 9);
        QVERIFY2(other > 40 && other < 100, qPrintable(QString::number(other)));
    }

    void a_burst_at_a_jobs_start_does_not_fill_it_with_one_volunteers_tasks() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(1000), Policy::redundant);
        LiveComputer& hasty = lab.join_proven();
        std::vector<LiveComputer*> others = {&lab.join_proven(), &lab.join_proven(), &lab.join_proven()};
        be_at_hand(lab, hasty, others);
        size_t taken = 0;
        for (int i = 0; i < 100; ++i) taken += lab.take(hasty, 256).size();
        QCOMPARE(taken, size_t{4});
    }

  private:
    // There before anything is taken.
    static void be_at_hand(FakeLab& lab, LiveComputer& first, const std::vector<LiveComputer*>& others) {
        for (LiveComputer* other : others) {
            ExchangeRequest request = lab.request(*other, 1);
            request.want.devices[0].memory_bytes = 1;  // takes nothing now
            lab.exchange(*other, request);
            other->devices[0].memory_bytes = uint64_t{1} << 30;
        }
        first.wanted_tasks = 1;
    }
    // How often the one volunteer with another invitation gets a task, beside so many that share the
    // holder's.
    static int drawn_with_another_invitation(uint64_t tries, int sharing) {
        int drawn = 0;
        for (uint64_t seed = 0; seed < tries; ++seed) {
            FakeLab lab(seed);
            lab.submit(std::make_shared<FakePlan>(1), Policy::redundant);
            LiveComputer& first = lab.join(false, 7);
            std::vector<LiveComputer*> others = {&lab.join(false, 8)};
            for (int i = 0; i < sharing; ++i) others.push_back(&lab.join(false, 7));
            be_at_hand(lab, first, others);
            if (lab.take(first).size() == 1) drawn += drawn_for(lab, 0) == others[0]->record.volunteer;
        }
        return drawn;
    }
    static VolunteerId drawn_for(FakeLab& lab, TaskNumber task) {
        return lab.board.jobs().rbegin()->second.queue.find(task)->drawn;
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestReplicaDraw)
#include "test_replica_draw.moc"
