// Job after job of many small tasks on one lab node: its memory stays flat after the twentieth.
#include <QTest>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/work/link.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/small_task_volunteer.hpp"
#include "tests/support/test_form.hpp"

namespace goblin::test {

namespace {

using lab::Json;

constexpr int jobs_before = 20;
constexpr int64_t numbers = 16;  // in and out of each task
// What the allocator and SQLite's cache, which fills with the database, may still take: for each task far
// less than a record of it.
constexpr uint64_t still_flat_bytes = uint64_t{4} << 20;

uint64_t resident_bytes(pid_t pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
    throw Error(ErrorKind::io, "expected VmRSS in /proc, found none");
}

}  // namespace

class TestManyJobs : public QObject {
    Q_OBJECT

  private slots:
    void memory_is_flat_after_the_twentieth_job() {
        const int jobs = in_form(60, 200);
        const int64_t tasks = in_form<int64_t>(200, 5000);
        const uint64_t volunteers = in_form<uint64_t>(4, 16);
        LabProcess lab;
        const ProductFiles product(lab.files(), "p", random_matrix(DType::f32, tasks * numbers, 1, 1),
                                   random_matrix(DType::f32, 1, 1, 2));
        SmallTaskSwarm swarm(InvitationLink::parse(lab.invite(volunteers)), volunteers, 64);
        lab.wait_for_contributors(volunteers);
        uint64_t after_twenty = 0;
        uint64_t last_ones = 0;
        uint64_t id = 0;
        for (int job = 1; job <= jobs; ++job) {
            std::filesystem::remove(product.output());
            id = lab.submit_product(product.a(), product.b(), product.output(),
                                    {{"verify", "redundant"}, {"replicas", 2}}, fmt::format("{}x1", numbers));
            const Json status = lab.wait_for_job(id, 240'000);
            QVERIFY2(status["state"] == "done", status.dump().c_str());
            QCOMPARE(product.wrong_output(), std::string());
            const uint64_t resident = resident_bytes(lab.pid());
            if (job > jobs_before - 5 && job <= jobs_before) after_twenty = std::max(after_twenty, resident);
            if (job > jobs - 5) last_ones = std::max(last_ones, resident);
            if (job % 10 == 0)
                qInfo("after job %d: %.1f MiB", job, static_cast<double>(resident) / (1 << 20));
        }
        swarm.stop();
        QVERIFY2(
            last_ones <= after_twenty + still_flat_bytes,
            qPrintable(
                QString("%1 bytes after the twentieth job, %2 at the end").arg(after_twenty).arg(last_ones)));
        const LabLedger ledger(lab.directory());
        QCOMPARE(ledger.imbalance_of(id, static_cast<uint64_t>(tasks), 2), std::string());
        QCOMPARE(ledger.credited_results(), static_cast<uint64_t>(2 * jobs * tasks));
        QCOMPARE(ledger.disagreements(), uint64_t{0});
        QCOMPARE(lab.ask("job.list").size(), static_cast<size_t>(jobs));
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestManyJobs)
#include "test_many_jobs.moc"
