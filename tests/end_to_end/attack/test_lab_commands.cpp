// Each command of goblin-lab used rightly: what it does, prints and how it exits, with a real lab and a real
// worker.
#include <QTest>
#include <fstream>

#include "command_line.hpp"
#include "tests/support/verify.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

using lab::Json;

class TestLabCommands : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        at_hand_ = std::make_unique<LabAtHand>();
        asleep_ = std::make_unique<TemporaryFolder>();
    }

    void a_lab_is_made_once() {
        const std::string directory = (*asleep_ / "lab").string();
        QCOMPARE(run_program(program("goblin-lab"), {"init", directory}).exit_code, 0);
        const Finished again = run_program(program("goblin-lab"), {"--json", "init", directory});
        QVERIFY2(again.exit_code == usage && again.errors.find("found one") != std::string::npos,
                 told(again).c_str());
        const Finished fresh =
            run_program(program("goblin-lab"), {"--json", "init", (*asleep_ / "new").string(), "--name",
                                                std::string(64, 'n'), "--contact", std::string(1024, 'c')});
        QVERIFY2(fresh.exit_code == done && is_one_json_line(fresh.output), told(fresh).c_str());
        QCOMPARE(Json::parse(fresh.output)["key"].get<std::string>().size(), size_t{64});
    }

    void a_lab_is_made_in_a_new_or_an_empty_directory_and_leaves_others_as_they_are() {
        namespace fs = std::filesystem;
        const auto init = [](const fs::path& directory) {
            return run_program(program("goblin-lab"), {"init", directory.string()});
        };
        const fs::path shared = *asleep_ / "shared";
        fs::create_directory(shared);
        std::ofstream(shared / "somebody's file") << "text";
        fs::permissions(shared, fs::perms::all | fs::perms::sticky_bit);
        const Finished refused = init(shared);
        QVERIFY2(refused.exit_code == usage &&
                     refused.errors.find("expected a new directory") != std::string::npos,
                 told(refused).c_str());
        QVERIFY(fs::status(shared).permissions() == (fs::perms::all | fs::perms::sticky_bit));
        QVERIFY(!fs::exists(shared / "lab.key"));

        const fs::path empty = *asleep_ / "empty";
        fs::create_directory(empty);
        fs::permissions(empty, fs::perms::all);
        for (const fs::path& directory : {empty, *asleep_ / "parent" / "fresh"}) {
            const Finished made = init(directory);
            QVERIFY2(made.exit_code == done, told(made).c_str());
            QVERIFY(fs::status(directory).permissions() == fs::perms::owner_all);
        }
    }

    void settings_that_are_too_long_for_contributors_are_named_before_the_lab_is_served() {
        const std::filesystem::path settings = *asleep_ / "new" / "settings.json";
        Json stored = Json::parse(text_of_file(settings));
        for (const char* name : {"name", "computes", "contact"}) {
            Json wrong = stored;
            wrong[name] = std::string(1025, 'x');
            std::ofstream(settings) << wrong.dump();
            const Finished refused = run_program(
                program("goblin-lab"),
                {"--json", "--dir", (*asleep_ / "new").string(), "serve", "--listen", "127.0.0.1:0"});
            QVERIFY2(refused.exit_code == failed &&
                         refused.errors.find(fmt::format("settings.json: {}: expected", name)) !=
                             std::string::npos,
                     told(refused).c_str());
        }
    }

    void an_invitation_is_made_listed_and_revoked() {
        const Json made = json_of({"invite", "--uses", "2", "--expires", "2h", "--host", "127.0.0.1"});
        QVERIFY2(made["link"].get<std::string>().starts_with(
                     fmt::format("goblin://127.0.0.1:{}/#", at_hand_->lab.port())),
                 made.dump().c_str());
        QVERIFY(made["uses_left"] == 2 && made["trusted"] == false && made["revoked"] == false);
        const Json listed = json_of({"invite", "list"});
        QVERIFY(std::any_of(listed.begin(), listed.end(),
                            [&](const Json& each) { return each["id"] == made["id"]; }));
        QVERIFY2(listed.dump().find("link") == std::string::npos, "tokens are not kept");
        const Json revoked = json_of({"invite", "revoke", std::to_string(made["id"].get<uint64_t>())});
        QVERIFY(revoked["revoked"] == true);
        const Finished worker =
            run_program(program("goblin-worker"),
                        Words{"--dir", (*asleep_ / "refused").string(), "--join", made["link"]} +
                            WorkerProcess::modest_options("late"));
        QVERIFY2(worker.exit_code == failed && worker.errors.find("revoked") != std::string::npos,
                 told(worker).c_str());
    }

    void what_people_read_is_no_json() {
        const Finished link = in_files({"invite", "--host", "127.0.0.1"}, false);
        QVERIFY2(link.exit_code == done && link.output.starts_with("goblin://"), told(link).c_str());
        const Finished jobs = in_files({"job", "list"}, false);
        QVERIFY2(jobs.exit_code == done && jobs.output == "no jobs\n", told(jobs).c_str());
        const Finished nodes = in_files({"node", "list"}, false);
        QVERIFY2(nodes.exit_code == done && nodes.output == "no contributors\n", told(nodes).c_str());
    }

    void a_dry_run_plans_and_submits_nothing() {
        const Json plan = json_of({"product", "A.npy", "B.npy", "-o", "C.npy", "--tile", "8x8", "--dry-run"});
        VERIFY_JSON(plan["tasks"], 9);
        for (const char* member : {"flops", "bytes_down", "bytes_up", "memory_per_task_bytes", "promise"})
            QVERIFY2(plan.contains(member), member);
        QCOMPARE(json_of({"job", "list"}).size(), size_t{0});
        QVERIFY(!std::filesystem::exists(at_hand_->lab.files() / "C.npy"));
    }

    void who_detaches_is_told_how_to_return_from_any_folder_data() {
        QTest::addColumn<QString>("option");
        for (const char* option : {"--detach", "--timeout=1s"}) QTest::newRow(option) << option;
    }
    void who_detaches_is_told_how_to_return_from_any_folder() {
        QFETCH(QString, option);
        const Finished left = in_files({"product", "A.npy", "B.npy", "-o", "C.npy", option.toStdString()});
        QVERIFY2(left.exit_code == detached, told(left).c_str());
        const std::string id = std::to_string(Json::parse(left.output)["id"].get<uint64_t>());
        const std::string back =
            fmt::format("goblin-lab --dir {} job watch {}\n", at_hand_->lab.directory().string(), id);
        QVERIFY2(left.errors.find(back) != std::string::npos, told(left).c_str());
        json_of({"job", "stop", id});
        json_of({"job", "delete", id});
    }

    void a_job_nobody_computes_is_detached_from_shown_and_stopped() {
        const Json job = json_of({"product", "A.npy", "B.npy", "-o", "C.npy", "--detach"}, detached);
        const std::string id = std::to_string(job["id"].get<uint64_t>());
        const Json status = json_of({"job", "status", id});
        VERIFY_JSON(status["state"], "queued");
        QVERIFY2(status["reason"].get<std::string>().find("none is connected") != std::string::npos,
                 status.dump().c_str());
        VERIFY_JSON(json_of({"job", "watch", id, "--timeout", "1s"}, detached)["state"], "queued");
        VERIFY_JSON(json_of({"job", "result", id}, detached)["state"], "queued");
        VERIFY_JSON(
            json_of({"product", "A.npy", "B.npy", "-o", "D.npy", "--timeout", "1s"}, detached)["state"],
            "queued");
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"job", "delete", id}, "stop it first"));
        VERIFY_JSON(json_of({"job", "stop", id})["state"], "stopped");
        VERIFY_JSON(json_of({"job", "stop", id})["state"], "stopped");  // no harm
        VERIFY_JSON(json_of({"job", "watch", id}, failed)["state"], "stopped");
        VERIFY_JSON(json_of({"job", "result", id}, failed)["state"], "stopped");
        VERIFY_JSON(json_of({"job", "delete", id})["id"], job["id"]);
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"job", "status", id}, "job list"));
        for (const Json& left : json_of({"job", "list"}))
            json_of({"job", "stop", std::to_string(left["id"].get<uint64_t>())});
    }

    void a_job_that_a_worker_computes_is_watched_to_its_end() {
        worker_ = std::make_unique<WorkerProcess>(WorkerProcess::Settings{
            at_hand_->lab.invite(), WorkerProcess::modest_options("Zoë's PC"), {}, {}});
        at_hand_->lab.wait_for_contributors(1);
        const Json report = json_of({"product", "A.npy", "B.npy", "-o", "E.npy", "--tile", "8x8"});
        QVERIFY2(report["state"] == "done" && report["accepted"] == 9, report.dump().c_str());
        QVERIFY2(report["verification"]["promise"].get<std::string>().find("every bit is right") == 0,
                 report.dump().c_str());
        const std::string id = std::to_string(report["id"].get<uint64_t>());
        VERIFY_JSON(json_of({"job", "result", id})["accepted"], 9);
        VERIFY_JSON(json_of({"job", "watch", id})["state"], "done");
        const Json lines = json_of({"job", "logs", id, "--most", "5"});
        QCOMPARE(lines.size(), size_t{5});
        QVERIFY(lines.back()["text"] == "done" && lines.back()["at_ms"].is_number());
        const Finished text = in_files({"job", "result", id}, false);
        QVERIFY2(text.exit_code == done && text.output.find("Zoë's PC") != std::string::npos,
                 told(text).c_str());
        std::filesystem::rename(at_hand_->lab.files() / "E.npy", at_hand_->product.output());
        QCOMPARE(at_hand_->product.wrong_output(), std::string());
    }

    void operands_that_cant_be_used_are_wrong_usage() {
        const Finished no_file = in_files({"product", "missing.npy", "B.npy", "-o", "F.npy"});
        QVERIFY2(no_file.exit_code == usage && no_file.errors.find("missing.npy") != std::string::npos,
                 told(no_file).c_str());
        const Finished shapes = in_files({"product", "A.npy", "A.npy", "-o", "F.npy"});
        QVERIFY2(
            shapes.exit_code == usage && shapes.errors.find("transpose one of them") != std::string::npos,
            told(shapes).c_str());
    }

    void contributors_are_shown_banned_approved_and_forgotten() {
        const Json listed = json_of({"node", "list"});
        QCOMPARE(listed.size(), size_t{1});
        const std::string id = std::to_string(listed[0]["id"].get<uint64_t>());
        const Json shown = json_of({"node", "show", id});
        QVERIFY2(shown["name"] == "Zoë's PC" && shown["devices"].size() == 1 && shown["agreed"] == 9,
                 shown.dump().c_str());
        VERIFY_JSON(json_of({"node", "ban", id, "--computer"})["membership"], "banned");
        VERIFY_JSON(json_of({"node", "approve", id})["membership"], "approved");
        VERIFY_JSON(json_of({"node", "ban", id})["membership"], "banned");
        QVERIFY(wait_until([&] { return !worker_->running(); }));
        QVERIFY2(worker_->log().find("banned") != std::string::npos, worker_->log().c_str());
        VERIFY_JSON(json_of({"node", "approve", id})["membership"], "approved");
        const Finished forgotten = in_files({"node", "forget", id}, false);
        QCOMPARE(forgotten.output,
                 fmt::format("computer {} (Zoë's PC) is forgotten; it must join again\n", id));
        QCOMPARE(json_of({"node", "list"}).size(), size_t{0});
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"node", "show", id}, "node list"));
    }

    void cleanupTestCase() {
        worker_.reset();
        if (at_hand_) QCOMPARE(at_hand_->lab.stop(), 0);
    }

  private:
    Finished in_files(const Words& arguments, bool json = true) const {
        return at_hand_->in_files(arguments, json);
    }
    Json json_of(const Words& arguments, int exit = done) const { return at_hand_->json_of(arguments, exit); }

    std::unique_ptr<LabAtHand> at_hand_;
    std::unique_ptr<TemporaryFolder> asleep_;  // with labs that nobody serves
    std::unique_ptr<WorkerProcess> worker_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestLabCommands)
#include "test_lab_commands.moc"
