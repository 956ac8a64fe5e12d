// Contributors that take tasks and bring nothing, or commit to numbers that they never send: others get the
// tasks when the assignments' time is over, the silent ones get fewer, and the bits are right.
#include <QTest>

#include <algorithm>

#include "core/error.hpp"
#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

// An assignment lasts 30 s at least.
constexpr int patience_ms = 150'000;

// A lab with one job, two honest contributors, and silent ones that each have a task of the job.
class LabWithSilentOnes {
  public:
    explicit LabWithSilentOnes(const std::string& policy)
        : job(all, {.policy = policy, .rows = 16, .cols = 16}) {
        task_of(gone);
        task_of(stays);
        commits.tell(Contributor::commitment(task_of(commits)));
        crew_.add(all.alice);
        crew_.add(all.bob);
    }

    LabWithHonestOnes all;
    Job job;
    Contributor gone{all.lab, "takes a task and is gone"};
    Contributor stays{all.lab, "takes a task and stays"};
    Contributor commits{all.lab, "commits and never sends"};

    // The honest ones work; of the silent ones, two go on listing what they have.
    bool over() {
        for (Contributor* each : {&stays, &commits}) each->take(each->exchange(each->request_of({}, 0)));
        return all.lab.is_over(job.id());
    }
    void rest() { crew_.rest(); }

  private:
    static const Work& task_of(Contributor& contributor) {
        const Work* const work = contributor.take_task();
        if (work == nullptr) throw Error(ErrorKind::failed, "expected a task, found none");
        return *work;
    }

    Crew crew_;
};

}  // namespace

class TestSilentContributors : public QObject {
    Q_OBJECT

  private slots:
    // All policies at once: each waits for the same half minute.
    void who_returns_nothing_or_only_a_digest_is_late_and_others_get_its_tasks() {
        const std::vector<std::string> policies = {"recompute", "redundant", "product"};
        std::vector<std::unique_ptr<LabWithSilentOnes>> labs;
        for (const std::string& policy : policies)
            labs.push_back(std::make_unique<LabWithSilentOnes>(policy));
        const auto over = [&] {
            // No short cut: all of them must be told.
            return std::count_if(labs.begin(), labs.end(), [](auto& lab) { return lab->over(); }) ==
                   static_cast<ptrdiff_t>(labs.size());
        };
        QVERIFY(wait_until(over, patience_ms, 200));
        for (auto& lab : labs) {
            lab->rest();
            VERIFY_EMPTY(lab->job.what_is_wrong(lab->all.lab.job(lab->job.id())));
            for (const Contributor* silent : {&lab->gone, &lab->stays, &lab->commits}) {
                const lab::Json shown = lab->all.show(*silent);
                QCOMPARE(shown["agreed"].get<int>(), 0);
                QCOMPARE(shown["disagreed"].get<int>(), 0);  // nothing is proved against it
                QCOMPARE(shown["quota"].get<int>(), 1);
            }
            const std::string late = "is late; others may get the task";
            QVERIFY2(lab->job.history().find(late) != std::string::npos, lab->job.history().c_str());
        }
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestSilentContributors)
#include "test_silent_contributors.moc"
