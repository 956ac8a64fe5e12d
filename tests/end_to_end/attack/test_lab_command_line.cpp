// The command line of goblin-lab as a specification: one table of its commands, what a wrong one is told,
// what each one prints and how it exits, with a real lab and a real worker.
#include <QTest>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

// Shows what was found when it is another value.
#define VERIFY_JSON(expression, expected)                    \
    do {                                                     \
        const goblin::lab::Json found = (expression);        \
        QVERIFY2(found == (expected), found.dump().c_str()); \
    } while (false)

namespace goblin::test {

namespace {

using lab::Json;
using Words = std::vector<std::string>;

enum Exit { done = 0, failed = 1, usage = 2, no_node = 3, detached = 4 };

// Every command. `operands`: what it needs, in values that are well formed. `examples_exit`: how its examples
// exit where a lab is but no node runs; a group alone is no command.
struct Row {
    const char* words;
    Words operands;
    Exit examples_exit;
    bool group = false;
};
const Row commands[] = {
    {"init", {}, done},
    {"serve", {}, done},
    {"renew-key", {}, done},
    {"invite", {}, no_node},
    {"invite list", {}, no_node},
    {"invite revoke", {"3"}, no_node},
    {"product", {"A.npy", "B.npy", "-o", "C.npy"}, no_node},
    {"job", {}, no_node, true},
    {"job list", {}, no_node},
    {"job status", {"3"}, no_node},
    {"job watch", {"3"}, no_node},
    {"job logs", {"3"}, no_node},
    {"job stop", {"3"}, no_node},
    {"job delete", {"3"}, no_node},
    {"job result", {"3"}, no_node},
    {"node", {}, no_node, true},
    {"node list", {}, no_node},
    {"node show", {"3"}, no_node},
    {"node approve", {"3"}, no_node},
    {"node ban", {"3"}, no_node},
    {"node forget", {"3"}, no_node},
};

// Values that are no value of the option or operand they stand for.
struct WrongValue {
    const char* words;
    Words arguments;
};
const WrongValue wrong_values[] = {
    {"init", {"--name", ""}},
    {"init", {"--name", std::string(1025, 'n')}},
    {"init", {"--name", std::string(65, 'n')}},
    {"init", {"--name", "a\x1b[2Jb"}},
    {"init", {"--computes", std::string(1025, 'c')}},
    {"init", {"--contact", "a\nb"}},
    {"serve", {"--listen", "nowhere:x"}},
    {"serve", {"--listen", "127.0.0.1:65536"}},
    {"serve", {"--listen", ""}},
    {"serve", {"--log-level", "loud"}},
    {"invite", {"--uses", "0"}},
    {"invite", {"--uses", "-1"}},
    {"invite", {"--uses", "many"}},
    {"invite", {"--uses", "1000001"}},
    {"invite", {"--uses"}},
    {"invite", {"--expires", "7"}},
    {"invite", {"--expires", "0d"}},
    {"invite", {"--expires", "soon"}},
    {"invite", {"--host", "two words"}},
    {"invite", {"--host", "lab:port"}},
    {"invite", {"--trusted=maybe"}},
    {"invite revoke", {"0"}},
    {"invite revoke", {"x"}},
    {"invite revoke", {"999"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--verify", "hope"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--replicas", "1"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--replicas", "17"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--replicas", "3", "--verify", "recompute"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--max-wrong", "2"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--max-wrong", "nan"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--max-wrong", "1e-6", "--verify", "redundant"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--tile", "big"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--tile", "0x8"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--timeout", "1"}},
    {"product", {"A.npy", "B.npy", "-o", "A.npy"}},
    {"product", {"A.npy", "B.npy", "-o", "B.npy"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--detach=x"}},
    {"product", {"A.npy", "B.npy", "-o", "\xff.npy"}},
    {"job status", {"0"}},
    {"job status", {"x"}},
    {"job status", {"18446744073709551616"}},
    {"job status", {"999"}},
    {"job watch", {"999"}},
    {"job watch", {"1", "--timeout", "soon"}},
    {"job logs", {"999"}},
    {"job logs", {"1", "--most", "0"}},
    {"job logs", {"1", "--most", "all"}},
    {"job stop", {"999"}},
    {"job delete", {"999"}},
    {"job result", {"999"}},
    {"node show", {"999"}},
    {"node show", {"x"}},
    {"node approve", {"999"}},
    {"node ban", {"999"}},
    {"node forget", {"999"}},
};

Words words_of(const std::string& text) {
    Words words;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(' ', begin), text.size());
        if (end > begin) words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// The lines of a help text that a person would type: without what explains them.
Words examples_in(const std::string& help) {
    Words examples;
    for (size_t begin = help.find("\n  goblin-lab"); begin != std::string::npos;
         begin = help.find("\n  goblin-lab", begin + 1)) {
        const std::string line = help.substr(begin + 3, help.find('\n', begin + 1) - begin - 3);
        examples.push_back(line.substr(0, line.find("  ")));
    }
    return examples;
}

std::string told(const Finished& finished) {
    return fmt::format("exit {}\n{}\n{}", finished.exit_code, finished.output, finished.errors);
}

bool is_one_json_line(const std::string& output) {
    return output.find('\n') == output.size() - 1 && !Json::parse(output, nullptr, false).is_discarded();
}

}  // namespace

class TestLabCommandLine : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        lab_ = std::make_unique<LabProcess>();
        product_ = std::make_unique<ProductFiles>(lab_->files(), "A", random_matrix(DType::f32, 24, 6, 1),
                                                  random_matrix(DType::f32, 6, 24, 2));
        std::filesystem::copy_file(product_->a(), lab_->files() / "A.npy");
        std::filesystem::copy_file(product_->b(), lab_->files() / "B.npy");
        asleep_ = std::make_unique<TemporaryFolder>();
        QCOMPARE(run_program(program("goblin-lab"), {"init", (*asleep_ / "lab").string()}).exit_code, 0);
    }

    void the_table_has_every_command() {
        std::set<std::string> known;
        for (const Row& row : commands) known.insert(row.words);
        for (const Row& row : commands) {
            if (!row.group && std::string(row.words) != "invite") continue;
            for (const std::string& name : names_in_help(words_of(row.words)))
                QVERIFY2(known.contains(std::string(row.words) + " " + name), name.c_str());
        }
        for (const std::string& name : names_in_help({})) QVERIFY2(known.contains(name), name.c_str());
    }

    // ---- help
    void help_teaches_by_examples_that_work_data() { add_commands(true); }
    void help_teaches_by_examples_that_work() {
        QFETCH(int, index);
        const Row& row = commands[index];
        const Finished help = in_files(words_of(row.words) + Words{"--help"});
        QVERIFY2(help.exit_code == done && help.errors.empty(), told(help).c_str());
        const Words examples = examples_in(help.output);
        QVERIFY2(!examples.empty() && help.output.find("Examples:\n") != std::string::npos,
                 told(help).c_str());
        for (std::string example : examples) {
            QVERIFY2(example.starts_with(std::string("goblin-lab ")), example.c_str());
            // Nothing outside the test's folder is touched.
            const TemporaryFolder folder;
            if (const size_t place = example.find("/srv/lab"); place != std::string::npos)
                example.replace(place, 8,
                                row.examples_exit == done && std::string(row.words) == "init"
                                    ? (folder / "lab").string()
                                    : (*asleep_ / "lab").string());
            if (std::string(row.words) == "serve") {
                QVERIFY2(serves_or_says_why_not(example, folder), example.c_str());
                continue;
            }
            const std::string directory = std::string(row.words) == "init" ? "" : (*asleep_ / "lab").string();
            const Finished ran = in_shell(example, folder.path(), directory);
            QVERIFY2(ran.exit_code == row.examples_exit, (example + "\n" + told(ran)).c_str());
        }
    }

    void help_and_version_of_the_program() {
        const Finished help = in_files({"--help"});
        QVERIFY2(help.exit_code == done && examples_in(help.output).size() >= 4, told(help).c_str());
        const Finished version = in_files({"--version"});
        QVERIFY2(version.exit_code == done && !version.output.empty(), told(version).c_str());
    }

    // ---- wrong usage
    void an_unknown_option_is_refused_data() { add_commands(true); }
    void an_unknown_option_is_refused() {
        QFETCH(int, index);
        const Row& row = commands[index];
        expect_usage_error(words_of(row.words) + row.operands + Words{"--nonsense"}, "--nonsense");
    }

    void a_missing_operand_is_named_data() { add_commands(true); }
    void a_missing_operand_is_named() {
        QFETCH(int, index);
        const Row& row = commands[index];
        if (row.group) return expect_usage_error(words_of(row.words), "found none");
        for (size_t kept = 0; kept < row.operands.size(); ++kept)
            expect_usage_error(words_of(row.words) + Words(row.operands.begin(),
                                                           row.operands.begin() + static_cast<long>(kept)),
                               "found");
    }

    void an_operand_too_many_is_refused_data() { add_commands(true); }
    void an_operand_too_many_is_refused() {
        QFETCH(int, index);
        const Row& row = commands[index];
        const Words first = std::string(row.words) == "init" ? Words{(*asleep_ / "other").string()} : Words{};
        expect_usage_error(words_of(row.words) + first + row.operands + Words{"toomuch"}, "toomuch");
        QVERIFY(!std::filesystem::exists(*asleep_ / "other"));
    }

    void a_wrong_value_is_refused_data() {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < std::size(wrong_values); ++i) {
            std::string name = wrong_values[i].words;
            for (const std::string& word : wrong_values[i].arguments) name += " " + word.substr(0, 12);
            QTest::addRow("%zu %s", i, name.c_str()) << static_cast<int>(i);
        }
    }
    void a_wrong_value_is_refused() {
        QFETCH(int, index);
        const WrongValue& row = wrong_values[index];
        Words all = words_of(row.words);
        if (all[0] == "init") all.push_back((*asleep_ / "never").string());
        expect_usage_error(all + row.arguments, "");
        QVERIFY(!std::filesystem::exists(*asleep_ / "never"));
    }

    void no_command_or_an_unknown_one_is_refused() {
        expect_usage_error({}, "found none");
        expect_usage_error({"compute"}, "compute");
        expect_usage_error({"job", "compute"}, "compute");
        expect_usage_error({"--nonsense", "job", "list"}, "--nonsense");
    }

    // ---- where there is no lab, or no lab node
    void without_a_lab_or_its_node_every_command_says_what_to_do_data() { add_commands(false); }
    void without_a_lab_or_its_node_every_command_says_what_to_do() {
        QFETCH(int, index);
        const Row& row = commands[index];
        if (row.examples_exit == done) return;  // init and serve need none
        for (const bool there_is_a_lab : {true, false}) {
            const std::string directory =
                there_is_a_lab ? (*asleep_ / "lab").string() : (*asleep_ / "nothing").string();
            const Finished ran = run_program(program("goblin-lab"), Words{"--json", "--dir", directory} +
                                                                        words_of(row.words) + row.operands);
            QVERIFY2(ran.exit_code == (there_is_a_lab ? no_node : usage), told(ran).c_str());
            QVERIFY2(is_one_json_line(ran.output) && Json::parse(ran.output).contains("error"),
                     told(ran).c_str());
            QVERIFY2(
                ran.errors.find(there_is_a_lab ? "goblin-lab serve" : "goblin-lab init") != std::string::npos,
                told(ran).c_str());
        }
    }

    // ---- right usage
    void an_invitation_is_made_listed_and_revoked() {
        const Json made = json_of({"invite", "--uses", "2", "--expires", "2h", "--host", "127.0.0.1"});
        QVERIFY2(
            made["link"].get<std::string>().starts_with(fmt::format("goblin://127.0.0.1:{}/#", lab_->port())),
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
        QVERIFY(!std::filesystem::exists(lab_->files() / "C.npy"));
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
            fmt::format("goblin-lab --dir {} job watch {}\n", lab_->directory().string(), id);
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
        expect_usage_error({"job", "delete", id}, "stop it first");
        VERIFY_JSON(json_of({"job", "stop", id})["state"], "stopped");
        VERIFY_JSON(json_of({"job", "stop", id})["state"], "stopped");  // no harm
        VERIFY_JSON(json_of({"job", "watch", id}, failed)["state"], "stopped");
        VERIFY_JSON(json_of({"job", "result", id}, failed)["state"], "stopped");
        VERIFY_JSON(json_of({"job", "delete", id})["id"], job["id"]);
        expect_usage_error({"job", "status", id}, "job list");
        for (const Json& left : json_of({"job", "list"}))
            json_of({"job", "stop", std::to_string(left["id"].get<uint64_t>())});
    }

    void a_job_that_a_worker_computes_is_watched_to_its_end() {
        worker_ = std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options("Zoë's PC"), {}, {}});
        lab_->wait_for_contributors(1);
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
        std::filesystem::rename(lab_->files() / "E.npy", product_->output());
        QCOMPARE(product_->wrong_output(), std::string());
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
        expect_usage_error({"node", "show", id}, "node list");
    }

    void a_lab_is_made_once() {
        const std::string directory = (*asleep_ / "lab").string();
        const Finished again = run_program(program("goblin-lab"), {"--json", "init", directory});
        QVERIFY2(again.exit_code == usage && again.errors.find("found one") != std::string::npos,
                 told(again).c_str());
        const Finished fresh =
            run_program(program("goblin-lab"), {"--json", "init", (*asleep_ / "new").string(), "--name",
                                                std::string(64, 'n'), "--contact", std::string(1024, 'c')});
        QVERIFY2(fresh.exit_code == done && is_one_json_line(fresh.output), told(fresh).c_str());
        QCOMPARE(Json::parse(fresh.output)["key"].get<std::string>().size(), size_t{64});
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

    void cleanupTestCase() {
        worker_.reset();
        if (lab_) QCOMPARE(lab_->stop(), 0);
    }

  private:
    static void add_commands(bool with_groups) {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < std::size(commands); ++i)
            if (with_groups || !commands[i].group) QTest::newRow(commands[i].words) << static_cast<int>(i);
    }

    // The names that a help text lists as commands.
    Words names_in_help(const Words& command) const {
        const std::string help = in_files(command + Words{"--help"}).output;
        Words names;
        size_t line = help.find("Subcommands:\n");
        while (line != std::string::npos) {
            line = help.find('\n', line);
            if (line == std::string::npos || help.compare(line, 3, "\n  ") != 0) break;
            names.push_back(help.substr(line + 3, help.find(' ', line + 3) - line - 3));
            ++line;
        }
        return names;
    }

    Finished in_shell(const std::string& line, const std::filesystem::path& folder,
                      const std::string& directory) const {
        const std::string there =
            fmt::format("cd '{}' && PATH='{}':$PATH {} exec {}", folder.string(),
                        program("goblin-lab").parent_path().string(),
                        directory.empty() ? "" : "GOBLIN_LAB_DIR='" + directory + "'", line);
        return run_program("/bin/sh", {"-c", there});
    }

    // Among the test's files, as a person would stand there.
    Finished in_files(const Words& arguments, bool json = true) const {
        Words all = {
            "-c",    "cd \"$0\" && exec \"$@\"", lab_->files().string(), program("goblin-lab").string(),
            "--dir", lab_->directory().string()};
        if (json) all.push_back("--json");
        return run_program("/bin/sh", all + arguments);
    }

    // The document that the command prints with --json; throws unless it exits as expected.
    Json json_of(const Words& arguments, int exit = done) const {
        const Finished ran = in_files(arguments);
        if (ran.exit_code != exit || !is_one_json_line(ran.output))
            throw Error(ErrorKind::failed, "expected exit {} and one line of JSON, found {}", exit,
                        told(ran));
        return Json::parse(ran.output);
    }

    void expect_usage_error(const Words& arguments, const std::string& found) const {
        const Finished ran = in_files(arguments);
        const std::string shown = fmt::format("goblin-lab {}\n", fmt::join(arguments, " "));
        QVERIFY2(ran.exit_code == usage, (shown + "\n" + told(ran)).c_str());
        const auto says = [&](const std::string& text) { return ran.errors.find(text) != std::string::npos; };
        QVERIFY2(says("goblin-lab: ") && says("expected") && says("found") && says(found),
                 (shown + "\n" + told(ran)).c_str());
        // The next step: where help is, another command, or what a right value looks like.
        QVERIFY2(says("--help") || says("`goblin-lab ") || says("for example") || says("use ") ||
                     says("choose ") || says("remove it"),
                 (shown + "\n" + told(ran)).c_str());
        QVERIFY2(is_one_json_line(ran.output) && Json::parse(ran.output).contains("error"),
                 (shown + "\n" + told(ran)).c_str());
    }

    // Whether the example was understood: it listens, or says that it can't.
    bool serves_or_says_why_not(const std::string& example, const TemporaryFolder& folder) const {
        ChildProcess serving({"/bin/sh",
                              {"-c", fmt::format("PATH='{}':$PATH exec {}",
                                                 program("goblin-lab").parent_path().string(), example)},
                              {"GOBLIN_LAB_DIR=" + (*asleep_ / "lab").string()},
                              folder / "out",
                              folder / "err"});
        wait_until([&] { return !serving.output().empty() || !serving.running(); });
        if (!serving.running())
            return serving.wait(0) == failed && serving.errors().find("--listen") != std::string::npos;
        serving.signal(SIGTERM);
        return serving.wait(30'000) == done;
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<ProductFiles> product_;
    std::unique_ptr<TemporaryFolder> asleep_;  // with a lab that nobody serves
    std::unique_ptr<WorkerProcess> worker_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestLabCommandLine)
#include "test_lab_command_line.moc"
