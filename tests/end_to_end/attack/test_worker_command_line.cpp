// The command line of goblin-worker as a specification: what a wrong one is told, what each command prints
// and how it exits, and examples of its help that work as they stand.
#include <QTest>
#include <fstream>

#include "command_line.hpp"
#include "tests/support/verify.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

const Words wrong_lines[] = {
    {"--nonsense"},
    {"--nonsense=1"},
    {"-h"},
    {"compute"},
    {"devices", "selftest"},
    {"devices", "toomuch"},
    {"devices", "--nonsense"},
    {"selftest", "--nonsense"},
    {"--join"},
    {"--join", ""},
    {"--join", "lab.example.org"},
    {"--join", "http://lab.example.org:7410/#KEY.TOKEN"},
    {"--join", "goblin://lab.example.org:7410/#KEY.TOKEN"},
    {"--join", "goblin://lab.example.org/"},
    {"--join", "goblin://lab.example.org:0/#a.b"},
    {"--join-file"},
    {"--cpu-threads", "0"},
    {"--cpu-threads", "many"},
    {"--cpu-threads", "1025"},
    {"--cpu-threads", "-1"},
    {"--memory", "lots"},
    {"--memory", "1.5GiB"},
    {"--disk", "-1"},
    {"--finish", "10"},
    {"--max-idle", "soon"},
    {"--max-lifetime", "1.5h"},
    {"--name", ""},
    {"--name", std::string(65, 'n')},
    {"--name", "a\x1b[2Jb"},
    {"--log-level", "loud"},
    {"--no-gpu=yes"},
    {"--ephemeral=1"},
    {"--json"},
    {},
};

}  // namespace

class TestWorkerCommandLine : public QObject {
    Q_OBJECT

    TemporaryFolder folder_;

    Finished run(Words arguments, const std::string& directory = "worker") const {
        return run_program(program("goblin-worker"), std::move(arguments),
                           {"GOBLIN_WORKER_DIR=" + (folder_ / directory).string()});
    }
    Finished in_shell(const std::string& line) const {
        return run_program("/bin/sh",
                           {"-c", fmt::format("cd '{}' && PATH='{}':$PATH exec {}", folder_.path().string(),
                                              program("goblin-worker").parent_path().string(), line)},
                           {"GOBLIN_WORKER_DIR=" + (folder_ / "by-example").string()});
    }

  private slots:
    void a_wrong_line_is_told_what_was_expected_what_was_found_and_what_to_do_data() {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < std::size(wrong_lines); ++i) {
            std::string name;
            for (const std::string& word : wrong_lines[i]) name += word.substr(0, 24) + " ";
            QTest::addRow("%zu %s", i, name.c_str()) << static_cast<int>(i);
        }
    }
    void a_wrong_line_is_told_what_was_expected_what_was_found_and_what_to_do() {
        QFETCH(int, index);
        const Finished ran = run(wrong_lines[index]);
        QVERIFY2(ran.exit_code == 2 && ran.output.empty(), told(ran).c_str());
        const auto says = [&](const std::string& text) { return ran.errors.find(text) != std::string::npos; };
        QVERIFY2(says("goblin-worker: ") && says("expected") && says("found"), told(ran).c_str());
        QVERIFY2(says("goblin-worker --help") || says("goblin-worker --join LINK"), told(ran).c_str());
        QVERIFY2(!says("\x1b"), told(ran).c_str());
    }

    void a_link_file_that_is_not_there_is_named() {
        const Finished ran = run({"--join-file", (folder_ / "nowhere").string()});
        QVERIFY2(ran.exit_code == 1 && ran.errors.find("nowhere") != std::string::npos, told(ran).c_str());
    }

    void help_and_version() {
        for (const char* word : {"--help", "help"}) {
            const Finished help = run({word});
            QVERIFY2(help.exit_code == 0 && help.errors.empty() &&
                         help.output.find("goblin-worker --join 'goblin://") != std::string::npos,
                     told(help).c_str());
        }
        const Finished version = run({"--version"});
        QVERIFY2(version.exit_code == 0 && version.output.starts_with("goblin-worker "),
                 told(version).c_str());
    }

    void devices_and_selftest_speak_to_people_and_to_programs() {
        for (const char* command : {"devices", "selftest"}) {
            const Finished text = run({command, "--cpu-threads", "1"}, "untouched");
            QVERIFY2(text.exit_code == 0 && !text.output.empty(), told(text).c_str());
            const Finished ran = run({command, "--json", "--cpu-threads", "1"}, "untouched");
            QVERIFY2(ran.exit_code == 0, told(ran).c_str());
            const Json printed = Json::parse(ran.output, nullptr, false);
            QVERIFY2(printed.is_object() && printed["devices"].is_array() && !printed["devices"].empty(),
                     told(ran).c_str());
        }
        QVERIFY(!std::filesystem::exists(folder_ / "untouched"));
    }

    // As they stand, but for the link, and for an end.
    void the_examples_of_its_help_work() {
        LabProcess lab;
        const std::string link = lab.invite(10);
        std::ofstream(folder_ / "link") << link << "\n";
        std::filesystem::permissions(folder_ / "link", std::filesystem::perms::owner_read);
        const std::string help = run({"--help"}).output;
        int examples = 0;
        for (size_t begin = help.find("\n  goblin-worker"); begin != std::string::npos;
             begin = help.find("\n  goblin-worker", begin + 1)) {
            std::string line = help.substr(begin + 3, help.find('\n', begin + 1) - begin - 3);
            line = line.substr(0, line.find("  "));
            if (const size_t place = line.find("goblin://"); place != std::string::npos)
                line.replace(place, line.find('\'', place) - place, link);
            const bool works =
                line.find("devices") == std::string::npos && line.find("selftest") == std::string::npos;
            const Finished ran = in_shell(works ? line + " --max-lifetime 1s" : line);
            QVERIFY2(ran.exit_code == 0, QByteArray::fromStdString(line) + "\n" + told(ran).c_str());
            ++examples;
        }
        QCOMPARE(examples, 6);
        QCOMPARE(lab.ask("node.list").size(),
                 size_t{2});  // the one that stays, and the one that left nothing behind
    }

    void a_worker_that_joins_is_seen_and_ends_as_asked() {
        LabProcess lab;
        WorkerProcess worker({lab.invite(), WorkerProcess::modest_options("Zoë's PC"), {}, {}});
        lab.wait_for_contributors(1);
        VERIFY_JSON(lab.ask("node.list")[0]["name"], "Zoë's PC");
        QCOMPARE(worker.stop(), 0);
        const Finished used = run({"--join", lab.invite(), "--max-idle", "1s"}, "idle");
        QVERIFY2(used.exit_code == 0, told(used).c_str());
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestWorkerCommandLine)
#include "test_worker_command_line.moc"
