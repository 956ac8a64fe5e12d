// Full disks, at the lab and at a contributor: a clear error with the next step, and nothing lost: once there
// is room again, work goes on.
#include <QTest>

#include <nlohmann/json.hpp>

#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

constexpr uint64_t mib = 1 << 20;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

class TestFullDisks : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        if (!SmallDisk(mib)) QSKIP("this system lets a test have no disk of its own; run it as root");
    }

    void a_lab_made_on_a_full_disk_is_refused_and_can_be_made_later() {
        const SmallDisk disk(mib);
        disk.fill();
        const std::vector<std::string> init = {"init", (disk.path() / "lab").string()};
        const Finished refused = run_program(program("goblin-lab"), init);
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(
            has(refused.errors, "No space left") || has(refused.errors, "the disk refusing; free some space"),
            refused.errors.c_str());
        disk.remove_filler();
        const Finished made = run_program(program("goblin-lab"), init);
        QVERIFY2(made.exit_code == 0, made.errors.c_str());
    }

    void an_output_that_has_no_room_is_refused_at_submission_and_can_be_submitted_later() {
        const SmallDisk disk(4 * mib);
        LabProcess lab;
        WorkerProcess worker({lab.invite(), WorkerProcess::modest_options("one"), {}, {}});
        const ProductFiles product(lab.files(), "p", random_matrix(DType::i32, 600, 64, 1),
                                   random_matrix(DType::i32, 64, 600, 2));
        const fs::path output = disk.path() / "c.npy";
        disk.fill();
        const Finished refused =
            lab.command({"product", product.a().string(), product.b().string(), "-o", output.string()});
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, "expected room for 1440128 bytes in"), refused.errors.c_str());
        QVERIFY2(has(refused.errors, "free some and try again"), refused.errors.c_str());
        QVERIFY(lab.ask("job.list").empty());

        disk.remove_filler();
        const uint64_t id =
            lab.submit_product(product.a(), product.b(), output, {{"verify", "product"}}, "100x100");
        disk.fill();  // too late to do harm: the output has its room
        const Json status = lab.wait_for_job(id);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        fs::copy_file(output, product.output());
        QCOMPARE(product.wrong_output(), std::string());
    }

    void below_the_floor_of_free_disk_nothing_is_handed_out_until_there_is_room() {
        const SmallDisk disk(32 * mib);
        LabProcess lab(on(disk));
        WorkerProcess worker({lab.invite(), WorkerProcess::modest_options("one"), {}, {}});
        lab.wait_for_contributors(1);
        QCOMPARE(worker.stop(), 0);
        disk.fill(mib);
        const ProductFiles product = small_tasks(lab);
        const auto reason = [&](uint64_t id) { return lab.job(id)["reason"].get<std::string>(); };
        QVERIFY2(wait_until([&] { return has(lab.log(), "waiting for disk space at the lab"); }),
                 lab.log().c_str());
        const uint64_t id = submit(lab, product);
        QVERIFY2(
            has(reason(id), "waiting for disk space at the lab: 1 MiB are free, 1 MiB are the floor") ||
                has(reason(id), "waiting for disk space at the lab: 0 MiB are free, 1 MiB are the floor"),
            reason(id).c_str());
        worker.start();
        QVERIFY2(wait_until([&] { return has(worker.log(), "waiting for disk space at the lab"); }),
                 worker.log().c_str());
        QCOMPARE(lab.job(id)["accepted"].get<int>(), 0);
        disk.remove_filler();
        expect_done(lab, id, product);
        QVERIFY2(has(lab.log(), "there is disk space again"), lab.log().c_str());
    }

    void a_database_without_room_ends_the_lab_node_and_loses_nothing() {
        const SmallDisk disk(32 * mib);
        LabProcess lab(on(disk));
        WorkerProcess worker({lab.invite(), WorkerProcess::modest_options("one"), {}, {}});
        lab.wait_for_contributors(1);
        const ProductFiles product = small_tasks(lab);
        const uint64_t id = submit(lab, product);
        QVERIFY(wait_until([&] { return lab.job(id)["accepted"].get<int>() > 0; }));
        const auto accepted = lab.job(id)["accepted"].get<uint64_t>();
        disk.fill();
        invite_until_refused(lab);
        QVERIFY2(wait_until([&] { return !lab.running(); }), lab.log().c_str());
        QVERIFY2(has(lab.log(), "found the disk full"), lab.log().c_str());
        QVERIFY2(has(lab.log(), "nothing acknowledged is lost: start it again when that is mended"),
                 lab.log().c_str());
        disk.remove_filler();
        lab.start();
        QVERIFY(lab.job(id)["accepted"].get<uint64_t>() >= accepted);
        expect_done(lab, id, product);
    }

    void a_lab_node_started_on_a_full_disk_says_so_and_starts_once_there_is_room() {
        const SmallDisk disk(32 * mib);
        LabProcess lab(on(disk));
        QCOMPARE(lab.stop(), 0);
        disk.fill();
        const Finished refused = run_program(
            program("goblin-lab"), {"--dir", lab.directory().string(), "serve", "--listen", "127.0.0.1:0"});
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, "disk full") || has(refused.errors, "No space left"),
                 refused.errors.c_str());
        disk.remove_filler();
        lab.start();
        QCOMPARE(lab.ask("job.list").size(), size_t{0});
    }

    void a_contributor_with_a_full_disk_hands_back_and_another_ends_the_job() {
        LabProcess lab;
        const SmallDisk disk(8 * mib);
        WorkerProcess full({lab.invite(), WorkerProcess::modest_options("full"), {}, disk.path() / "worker"});
        lab.wait_for_contributors(1);
        disk.fill();
        const ProductFiles product = large_panels(lab);
        const uint64_t id = submit(lab, product);
        QVERIFY2(wait_until([&] { return has(full.log(), "takes no tasks for"); }), full.log().c_str());
        QVERIFY2(has(full.log(), "expected room for"), full.log().c_str());
        WorkerProcess other({lab.invite(), WorkerProcess::modest_options("other"), {}, {}});
        expect_done(lab, id, product);
        QVERIFY(!has(lab.history(id), "is late"));
    }

    void a_contributor_goes_on_once_its_disk_has_room() {
        LabProcess lab;
        const SmallDisk disk(8 * mib);
        WorkerProcess full({lab.invite(), WorkerProcess::modest_options("full"), {}, disk.path() / "worker"});
        lab.wait_for_contributors(1);
        disk.fill();
        const ProductFiles product = large_panels(lab);
        const uint64_t id = submit(lab, product);
        QVERIFY2(wait_until([&] { return has(full.log(), "takes no tasks for"); }), full.log().c_str());
        disk.remove_filler();
        // By itself it tries again after a minute; started again, at once.
        if (!long_form()) {
            QCOMPARE(full.stop(), 0);
            full.start();
        }
        expect_done(lab, id, product);
    }

  private:
    static LabProcess::Settings on(const SmallDisk& disk) {
        LabProcess::Settings settings;
        settings.directory = disk.path() / "lab";
        return settings;
    }

    static ProductFiles small_tasks(const LabProcess& lab) {
        return ProductFiles(lab.files(), "p", random_matrix(DType::i32, 640, 64, 1),
                            random_matrix(DType::i32, 64, 640, 2));
    }
    // Of 2 MiB each.
    static ProductFiles large_panels(const LabProcess& lab) {
        return ProductFiles(lab.files(), "p", random_matrix(DType::i32, 64, 16'384, 1),
                            random_matrix(DType::i32, 16'384, 64, 2));
    }
    static uint64_t submit(const LabProcess& lab, const ProductFiles& product) {
        return lab.submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}},
                                  "32x32");
    }

    static void invite_until_refused(const LabProcess& lab) {
        for (int i = 0; i < 100'000; ++i) {
            const Finished invited = lab.command({"invite", "--host", "127.0.0.1"});
            if (invited.exit_code == 0) continue;
            QVERIFY2(has(invited.errors, "expected") && has(invited.errors, "found"), invited.errors.c_str());
            return;
        }
        QFAIL("the disk was full, and all invitations were kept");
    }

    static void expect_done(const LabProcess& lab, uint64_t id, const ProductFiles& product) {
        const Json status = lab.wait_for_job(id, 150'000);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        const LabLedger ledger(lab.directory());
        QCOMPARE(ledger.imbalance_of(id, status["tasks"].get<uint64_t>(), 1), std::string());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }
};

}  // namespace goblin::test

int main(int count, char** arguments) {
    goblin::test::SmallDisk::prepare();
    goblin::test::TestFullDisks test;
    return QTest::qExec(&test, count, arguments);
}
#include "test_full_disks.moc"
