// A contributor that fails everything at once gets few tasks; the job ends with the right bits, and nobody is
// convicted.
#include <QTest>

#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using Json = lab::Json;

WorkerProcess::Settings modest(const LabProcess& lab, const std::string& name) {
    return {lab.invite(), WorkerProcess::modest_options(name), {}, {}};
}

Json record_of(const LabProcess& lab, const std::string& name) {
    for (const Json& node : lab.ask("node.list"))
        if (node["name"] == name) return lab.ask("node.show", {{"id", node["id"]}});
    return {};
}

// A square product in tiles of 16 × 16.
struct TiledJob {
    static constexpr int64_t tile = 16;

    TiledJob(const LabProcess& lab, int64_t tiles_a_side, const std::string& policy, uint64_t copies)
        : tasks(static_cast<uint64_t>(tiles_a_side * tiles_a_side)),
          replicas(copies),
          files(lab.files(), fmt::format("tiled-{}", tasks),
                random_matrix(DType::f32, tiles_a_side * tile, 64, 1),
                random_matrix(DType::f32, 64, tiles_a_side * tile, 2)),
          id(lab.submit_product(files.a(), files.b(), files.output(), {{"verify", policy}},
                                fmt::format("{}x{}", tile, tile))) {}

    // Empty when it is done, right, counted once, and nobody is convicted.
    std::string what_is_wrong(const LabProcess& lab) const {
        const Json status = lab.wait_for_job(id, 120'000);
        if (status["state"] != "done") return status.dump() + "\n" + lab.history(id);
        const LabLedger ledger(lab.directory());
        if (ledger.disagreements() != 0) return "somebody was convicted\n" + lab.history(id);
        if (ledger.credited_results() != ledger.agreed_altogether())
            return "credited more or less than agreed";
        return files.wrong_output() + ledger.imbalance_of(id, tasks, replicas);
    }

    uint64_t tasks;
    uint64_t replicas;
    ProductFiles files;
    uint64_t id;
};

}  // namespace

class TestBrokenContributors : public QObject {
    Q_OBJECT

  private slots:
    void one_that_fails_everything_at_once_gets_few_tasks_and_the_job_ends_right() {
        LabProcess lab;
        WorkerProcess one(modest(lab, "one"));
        WorkerProcess two(modest(lab, "two"));
        Contributor broken(lab, "broken");
        lab.wait_for_contributors(2);
        const TiledJob job(lab, 24, "redundant", 2);
        uint64_t failures = 0;
        const auto over = [&] {
            ExchangeRequest request = broken.request_of({}, 64);
            for (auto& [key, work] : broken.works())
                request.results.push_back(Contributor::failure(work, "no driver"));
            failures += request.results.size();
            broken.take(broken.exchange(request));
            return lab.is_over(job.id);
        };
        QVERIFY(wait_until(over, 120'000, 1));
        VERIFY_EMPTY(job.what_is_wrong(lab));
        // Each failure in a row makes it wait twice as long as the one before.
        QVERIFY2(broken.taken >= 1 && broken.taken <= 8, qPrintable(QString::number(broken.taken)));
        const Json shown = record_of(lab, "broken");
        QCOMPARE(shown["failed"].get<uint64_t>(), broken.taken);
        QVERIFY2(shown["disagreements"].dump().find("no driver") != std::string::npos, shown.dump().c_str());
        for (const char* honest : {"one", "two"}) QCOMPARE(record_of(lab, honest)["failed"].get<int>(), 0);
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestBrokenContributors)
#include "test_broken_contributors.moc"
