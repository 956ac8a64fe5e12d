// One lab, one lab node: ports and directories that are in use, file systems whose locks don't hold, and
// other programs that hold the database, are refused or waited out with the reason; nothing is deleted.
#include <QTest>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/work/digest.hpp"
#include "labcli/store/database.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/test_form.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr int lock_limit_ms = 60'000;  // how long the lab node waits for its database

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

Finished serve(const LabProcess& lab, const std::string& listen, std::vector<std::string> environment = {}) {
    return run_program(program("goblin-lab"),
                       {"--dir", lab.directory().string(), "serve", "--listen", listen},
                       std::move(environment), 2 * lock_limit_ms);
}

// Names and contents of what matters in a lab's directory.
std::set<std::string> contents(const fs::path& directory) {
    std::set<std::string> all;
    for (const char* name : {"lab.key", "lab.crt", "settings.json", "lab.sqlite"}) {
        const std::string text = text_of_file(directory / name);
        const auto bytes = std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
        all.insert(std::string(name) + " " + sha256(bytes).hex());
    }
    return all;
}

// Another program's hold on the database: nobody else can write meanwhile.
class Hold {
  public:
    explicit Hold(const fs::path& lab_directory) : database_(lab_directory / "lab.sqlite") {
        database_.execute("BEGIN EXCLUSIVE");
    }
    void release() { database_.execute("COMMIT"); }

  private:
    lab::Database database_;
};

// The strongest one: nobody else can even read.
class WholeHold {
  public:
    explicit WholeHold(const fs::path& lab_directory) : database_(lab_directory / "lab.sqlite") {
        database_.execute("PRAGMA locking_mode=EXCLUSIVE");
        database_.execute("BEGIN EXCLUSIVE");
        database_.execute("CREATE TABLE IF NOT EXISTS held(x)");
        database_.execute("DROP TABLE held");
        database_.execute("COMMIT");
    }

  private:
    lab::Database database_;
};

}  // namespace

class TestLabDirectory : public QObject {
    Q_OBJECT

  private slots:
    void init() { lab_ = std::make_unique<LabProcess>(); }

    void a_port_in_use_is_refused_with_the_next_step() {
        LabProcess other;
        QCOMPARE(other.stop(), 0);
        const Finished refused = serve(other, fmt::format("127.0.0.1:{}", lab_->port()));
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, fmt::format("port {}", lab_->port())), refused.errors.c_str());
        QVERIFY2(has(refused.errors, "in use"), refused.errors.c_str());
        QVERIFY2(has(refused.errors, "--listen"), refused.errors.c_str());
        other.start();
        QVERIFY(lab_->ask("job.list").empty());
        QVERIFY(other.ask("job.list").empty());
    }

    void a_second_lab_node_on_one_directory_is_refused_and_the_first_goes_on() {
        const Finished refused = serve(*lab_, "127.0.0.1:0");
        QCOMPARE(refused.exit_code, 2);
        QVERIFY2(has(refused.errors, lab_->directory().string()), refused.errors.c_str());
        QVERIFY2(
            has(refused.errors, "expected no lab node running on this directory, found one; stop it first"),
            refused.errors.c_str());
        expect_a_job_is_done();
    }

    void a_second_lab_in_one_directory_is_refused() {
        const auto before = contents(lab_->directory());
        const Finished refused = lab_->command({"init"});
        QCOMPARE(refused.exit_code, 2);
        QVERIFY2(has(refused.errors, "expected no lab there yet, found one"), refused.errors.c_str());
        QCOMPARE(contents(lab_->directory()), before);
    }

    void a_file_system_whose_locks_dont_hold_is_refused_and_nothing_deleted_data() {
        QTest::addColumn<QString>("locks");
        QTest::addRow("every lock is refused") << "fail";
        QTest::addRow("every lock is granted to everybody") << "ignore";
    }
    void a_file_system_whose_locks_dont_hold_is_refused_and_nothing_deleted() {
        QFETCH(QString, locks);
        QCOMPARE(lab_->stop(), 0);
        const auto before = contents(lab_->directory());
        const Finished refused =
            serve(*lab_, "127.0.0.1:0",
                  {"LD_PRELOAD=" GOBLIN_PRELOAD_LOCKS, "GOBLIN_TEST_LOCKS=" + locks.toStdString()});
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, "expected a file system that keeps locks"), refused.errors.c_str());
        QVERIFY2(has(refused.errors, "move the lab to a local disk"), refused.errors.c_str());
        QCOMPARE(contents(lab_->directory()), before);
        lab_->start();
        expect_a_job_is_done();
    }

    void a_worker_refuses_such_a_file_system_too() {
        const TemporaryFolder folder;
        const Finished refused = run_program(
            program("goblin-worker"), {"--dir", (folder / "worker").string(), "--join", lab_->invite()},
            {"LD_PRELOAD=" GOBLIN_PRELOAD_LOCKS, "GOBLIN_TEST_LOCKS=fail"});
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, "expected a file system with locks"), refused.errors.c_str());
        QVERIFY2(has(refused.errors, "choose a local directory with --dir"), refused.errors.c_str());
    }

    void a_database_that_another_program_holds_for_a_while_is_waited_for() {
        Hold hold(lab_->directory());
        std::thread release([&] {
            std::this_thread::sleep_for(std::chrono::seconds(5));
            hold.release();
        });
        const auto start = Clock::now();
        const Finished invited = lab_->command({"invite", "--host", "127.0.0.1"});
        const auto took = Clock::now() - start;
        release.join();
        QVERIFY2(invited.exit_code == 0, invited.errors.c_str());
        QVERIFY(took >= std::chrono::seconds(4));
        QVERIFY2(has(lab_->log(), "another program holds the lab's database locked"), lab_->log().c_str());
        expect_a_job_is_done();
    }

    void a_lab_node_starts_once_another_program_lets_go() {
        QCOMPARE(lab_->stop(), 0);
        auto hold = std::make_unique<WholeHold>(lab_->directory());
        std::thread release([&] {
            std::this_thread::sleep_for(std::chrono::seconds(5));
            hold.reset();
        });
        const auto start = Clock::now();
        lab_->start();
        const auto took = Clock::now() - start;
        release.join();
        QVERIFY(took >= std::chrono::seconds(4));
        QVERIFY2(has(lab_->log(), "another program holds the lab's database locked"), lab_->log().c_str());
        expect_a_job_is_done();
    }

    void a_lab_node_whose_database_is_held_for_too_long_ends_with_the_reason_and_loses_nothing() {
        if (!long_form()) QSKIP("takes more than a minute; ./goblin test --all runs it");
        WorkerProcess worker({lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        const ProductFiles product(lab_->files(), "q", random_matrix(DType::i32, 640, 64, 1),
                                   random_matrix(DType::i32, 64, 640, 2));
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "16x16");
        QVERIFY(wait_until([&] { return lab_->job(id)["accepted"].get<int>() > 0; }));
        const auto accepted = lab_->job(id)["accepted"].get<uint64_t>();
        {
            Hold hold(lab_->directory());
            QVERIFY2(wait_until([&] { return !lab_->running(); }, 2 * lock_limit_ms), lab_->log().c_str());
            hold.release();
        }
        QVERIFY2(has(lab_->log(), "found it locked by another program for a minute"), lab_->log().c_str());
        QVERIFY2(has(lab_->log(), "close that program and try again"), lab_->log().c_str());
        lab_->start();
        QVERIFY(lab_->job(id)["accepted"].get<uint64_t>() >= accepted);
        QCOMPARE(lab_->wait_for_job(id, 240'000)["state"].get<std::string>(), std::string("done"));
        QCOMPARE(product.wrong_output(), std::string());
    }

    void a_lab_node_doesnt_start_on_a_database_that_is_held_for_too_long() {
        if (!long_form()) QSKIP("takes more than a minute; ./goblin test --all runs it");
        QCOMPARE(lab_->stop(), 0);
        auto hold = std::make_unique<WholeHold>(lab_->directory());
        const Finished refused = serve(*lab_, "127.0.0.1:0");
        QCOMPARE(refused.exit_code, 1);
        QVERIFY2(has(refused.errors, "found it locked by another program for a minute"),
                 refused.errors.c_str());
        hold.reset();
        lab_->start();
        expect_a_job_is_done();
    }

  private:
    void expect_a_job_is_done() {
        WorkerProcess worker({lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        const ProductFiles product(lab_->files(), "p", random_matrix(DType::i32, 40, 30, 1),
                                   random_matrix(DType::i32, 30, 50, 2));
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "16x16");
        QCOMPARE(lab_->wait_for_job(id)["state"].get<std::string>(), std::string("done"));
        QCOMPARE(product.wrong_output(), std::string());
    }

    std::unique_ptr<LabProcess> lab_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestLabDirectory)
#include "test_lab_directory.moc"
