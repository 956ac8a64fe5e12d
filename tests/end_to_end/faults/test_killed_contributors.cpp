// `kill -9` of contributors at random moments of a job: started again they go on, the job ends with the
// contract's bits, nothing is lost or counted twice, and nobody is blamed.
#include <QTest>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/faults/killed_product.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

namespace {

constexpr int longest_life_us = 700'000;
constexpr int longest_death_us = 300'000;

}  // namespace

class TestKilledContributors : public QObject {
    Q_OBJECT

  private slots:
    // Panels of 72 KiB travel as blobs, tiles of 81 KiB as uploads: all kinds of transfers are cut off.
    void initTestCase() { job_ = std::make_unique<KilledProduct>(KilledProduct::Sizes{144 * 6, 128, 144}); }

    void jobs_end_with_the_right_bits_data() { KilledProduct::add_policies(); }
    void jobs_end_with_the_right_bits() {
        QFETCH(QString, policy);
        QFETCH(int, replicas);
        const int kills_wanted = in_form(2, 17);
        for (int kills = 0; kills < kills_wanted;) {
            const uint64_t id = job_->submit(policy.toStdString());
            while (kills < kills_wanted && job_->running(id)) {
                job_->sleep_up_to(longest_life_us);
                WorkerProcess& victim = *job_->workers()[job_->random()() % job_->workers().size()];
                victim.kill();
                ++kills;
                job_->sleep_up_to(longest_death_us);
                victim.start();
            }
            job_->expect_right(id, replicas);
        }
    }

    void every_agreed_result_is_credited_once_and_nobody_is_blamed() {
        job_->expect_credited_once_and_nobody_blamed();
    }

    void killed_contributors_were_no_new_ones() {
        QCOMPARE(job_->lab().ask("node.list").size(), job_->workers().size());
    }

  private:
    std::unique_ptr<KilledProduct> job_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestKilledContributors)
#include "test_killed_contributors.moc"
