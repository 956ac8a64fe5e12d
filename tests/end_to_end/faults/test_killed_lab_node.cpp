// `kill -9` of the lab node at random moments of a job: after each restart the job goes on by itself, and
// ends with the contract's bits; nothing accepted is lost or counted twice.
#include <QTest>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/faults/killed_product.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

namespace {

constexpr int longest_life_us = 1'200'000;  // between two kills
constexpr int longest_birth_us = 60'000;    // of a lab node that is killed while it starts

}  // namespace

class TestKilledLabNode : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { job_ = std::make_unique<KilledProduct>(KilledProduct::Sizes{384, 96, 16}); }

    void jobs_end_by_themselves_with_the_right_bits_data() { KilledProduct::add_policies(); }
    void jobs_end_by_themselves_with_the_right_bits() {
        QFETCH(QString, policy);
        QFETCH(int, replicas);
        const int kills_wanted = in_form(2, 17);
        for (int kills = 0; kills < kills_wanted;) {
            const uint64_t id = job_->submit(policy.toStdString());
            uint64_t accepted = 0;
            while (kills < kills_wanted && job_->running(id)) {
                job_->sleep_up_to(longest_life_us);
                accepted = std::max(accepted, job_->accepted(id));
                job_->lab().kill();
                ++kills;
                die_again_while_starting();
                job_->lab().start();
                const uint64_t kept = job_->accepted(id);
                QVERIFY2(
                    kept >= accepted,
                    qPrintable(
                        QString("%1 tasks were accepted, after the restart %2").arg(accepted).arg(kept)));
            }
            job_->expect_right(id, replicas);
        }
    }

    void every_agreed_result_is_credited_once() { job_->expect_credited_once_and_nobody_blamed(); }

    void workers_and_lab_stop_cleanly_afterwards() {
        for (const auto& worker : job_->workers()) QCOMPARE(worker->stop(), 0);
        QCOMPARE(job_->lab().stop(), 0);
    }

  private:
    // Every other time: killed before it has taken up its jobs, too.
    void die_again_while_starting() {
        if (job_->random()() % 2 == 0) return;
        const TemporaryFolder said;
        ChildProcess newborn({program("goblin-lab"),
                              {"--dir", job_->lab().directory().string(), "serve", "--listen",
                               fmt::format("127.0.0.1:{}", job_->lab().port())},
                              {},
                              said / "out",
                              said / "err"});
        job_->sleep_up_to(longest_birth_us);
        newborn.kill();
    }

    std::unique_ptr<KilledProduct> job_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestKilledLabNode)
#include "test_killed_lab_node.moc"
