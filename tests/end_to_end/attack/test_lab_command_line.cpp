// The command line of goblin-lab as a specification: one table of its commands, examples of their help that
// work as they stand, and what a wrong line is told.
#include <QTest>
#include <csignal>
#include <set>

#include "command_line.hpp"
#include "tests/support/verify.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

using lab::Json;

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
    {"product", {"A.npy", "B.npy", "-o", "C.txt"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--tile", "big"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--tile", "0x8"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--timeout", "1"}},
    {"product", {"A.npy", "B.npy", "-o", "A.npy"}},
    {"product", {"A.npy", "B.npy", "-o", "B.npy"}},
    {"product", {"A.npy", "B.npy", "-o", "C.npy", "--detach=x"}},
    {"product", {"A.npy", "B.npy", "-o", "\xff.npy"}},
    {"product", {"A.npy", "B.npy", "-o", ""}},
    {"product", {"", "B.npy", "-o", "C.npy"}},
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

}  // namespace

class TestLabCommandLine : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        at_hand_ = std::make_unique<LabAtHand>();
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
        const Finished help = at_hand_->in_files(words_of(row.words) + Words{"--help"});
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
        const Finished help = at_hand_->in_files({"--help"});
        QVERIFY2(help.exit_code == done && examples_in(help.output).size() >= 4, told(help).c_str());
        const Finished version = at_hand_->in_files({"--version"});
        QVERIFY2(version.exit_code == done && !version.output.empty(), told(version).c_str());
    }

    // ---- wrong usage
    void an_unknown_option_is_refused_data() { add_commands(true); }
    void an_unknown_option_is_refused() {
        QFETCH(int, index);
        const Row& row = commands[index];
        VERIFY_EMPTY(at_hand_->wrong_usage_error(words_of(row.words) + row.operands + Words{"--nonsense"},
                                                 "--nonsense"));
    }

    void a_missing_operand_is_named_data() { add_commands(true); }
    void a_missing_operand_is_named() {
        QFETCH(int, index);
        const Row& row = commands[index];
        if (row.group) VERIFY_EMPTY(at_hand_->wrong_usage_error(words_of(row.words), "found none"));
        for (size_t kept = 0; kept < row.operands.size(); ++kept)
            VERIFY_EMPTY(at_hand_->wrong_usage_error(
                words_of(row.words) +
                    Words(row.operands.begin(), row.operands.begin() + static_cast<long>(kept)),
                "found"));
    }

    void an_operand_too_many_is_refused_data() { add_commands(true); }
    void an_operand_too_many_is_refused() {
        QFETCH(int, index);
        const Row& row = commands[index];
        const Words first = std::string(row.words) == "init" ? Words{(*asleep_ / "other").string()} : Words{};
        VERIFY_EMPTY(at_hand_->wrong_usage_error(
            words_of(row.words) + first + row.operands + Words{"toomuch"}, "toomuch"));
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
        VERIFY_EMPTY(at_hand_->wrong_usage_error(all + row.arguments, ""));
        QVERIFY(!std::filesystem::exists(*asleep_ / "never"));
    }

    void a_directory_whose_name_is_no_utf8_is_refused() {
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"init", "v\xff"}, "v\\xff"));
        QVERIFY(!std::filesystem::exists(at_hand_->lab.files() / "v\xff"));
    }

    void no_command_or_an_unknown_one_is_refused() {
        VERIFY_EMPTY(at_hand_->wrong_usage_error({}, "found none"));
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"compute"}, "compute"));
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"job", "compute"}, "compute"));
        VERIFY_EMPTY(at_hand_->wrong_usage_error({"--nonsense", "job", "list"}, "--nonsense"));
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

    void cleanupTestCase() {
        if (at_hand_) QCOMPARE(at_hand_->lab.stop(), 0);
    }

  private:
    static void add_commands(bool with_groups) {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < std::size(commands); ++i)
            if (with_groups || !commands[i].group) QTest::newRow(commands[i].words) << static_cast<int>(i);
    }

    // The names that a help text lists as commands.
    Words names_in_help(const Words& command) const {
        const std::string help = at_hand_->in_files(command + Words{"--help"}).output;
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

    std::unique_ptr<LabAtHand> at_hand_;
    std::unique_ptr<TemporaryFolder> asleep_;  // with a lab that nobody serves
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestLabCommandLine)
#include "test_lab_command_line.moc"
