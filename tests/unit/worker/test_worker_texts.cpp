// What people read and write: options, log lines, a lab's refusals.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/lab_refusal.hpp"
#include "app/worker/log.hpp"
#include "app/worker/options.hpp"
#include "core/work/exchange.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;
using namespace goblin::worker;

namespace {

Options parse(std::initializer_list<std::string_view> arguments) {
    const std::vector<std::string_view> list(arguments);
    return parse_options(list);
}

const std::string link_text =
    InvitationLink{"lab.example", 7410, sha256({}), std::vector<uint8_t>(16, 1)}.text();

}  // namespace

class TestWorkerTexts : public QObject {
    Q_OBJECT
  private slots:
    void options_are_read_with_a_space_or_an_equals_sign() {
        const Options options = parse(
            {"--join", link_text, "--memory=4GiB", "--max-idle", "10m", "--ephemeral", "--name", "Größe 7"});
        QCOMPARE(options.links.size(), size_t{1});
        QCOMPARE(options.memory_bytes, uint64_t{4} << 30);
        QCOMPARE(options.max_idle_ms, uint64_t{600'000});
        QVERIFY(options.ephemeral);
        QCOMPARE(options.name, std::string("Größe 7"));
        QCOMPARE(options.command, Command::work);
    }
    void commands_are_read() {
        QCOMPARE(parse({"devices", "--json"}).command, Command::devices);
        QCOMPARE(parse({"selftest"}).command, Command::selftest);
        QCOMPARE(parse({"--help"}).command, Command::help);
    }
    void wrong_usage_names_the_option_and_what_was_expected() {
        VERIFY_REFUSED(parse({"--memory", "lots"}),
                       "--memory: expected a size like 512MiB or 4GiB, found 'lots'");
        VERIFY_REFUSED(parse({"--memory"}), "expected SIZE after --memory");
        VERIFY_REFUSED(parse({"--ephemeral=yes"}), "expected no value for --ephemeral");
        VERIFY_REFUSED(parse({"--no-such"}), "found '--no-such'");
        VERIFY_REFUSED(parse({"dance"}), "found 'dance'");
        VERIFY_REFUSED(parse({"--cpu-threads", "0"}), "from 1 to 1024");
        VERIFY_REFUSED(parse({"--join", "https://lab.example"}), "expected an invitation link");
        VERIFY_REFUSED(parse({"--log-level", "loud"}), "expected error, warning, info or debug");
        VERIFY_REFUSED(parse({"--join-file", "/no/such/file"}), "found none");
        QCOMPARE(kind_of_error_of([] { parse({"--memory", "lots"}); }), ErrorKind::usage);
    }
    void names_are_at_most_64_printable_characters() {
        VERIFY_REFUSED(parse({"--name", std::string(65, 'x')}), "1 to 64 printable characters");
        VERIFY_REFUSED(parse({"--name", "a\x1b[0m"}), "printable");
        VERIFY_REFUSED(parse({"--name", ""}), "printable");
        QString umlauts;
        for (int i = 0; i < 64; ++i) umlauts += QChar(0xe4);
        QCOMPARE(parse({"--name", umlauts.toStdString()}).name, umlauts.toStdString());
    }
    void a_link_is_read_from_a_file() {
        const QTemporaryDir folder;
        const std::string path = (folder.path() + "/link").toStdString();
        std::ofstream(path) << link_text << "\n";
        QCOMPARE(parse({"--join-file", path}).links.at(0).text(), link_text);
    }
    void help_names_every_option_it_takes() {
        for (const char* name : {"--join", "--join-file", "--dir", "--name", "--cpu-threads", "--memory",
                                 "--disk", "--no-gpu", "--finish", "--max-idle", "--max-lifetime",
                                 "--ephemeral", "--json", "--log-level", "devices", "selftest"})
            QVERIFY2(help_text().find(name) != std::string::npos, name);
    }
    void help_promises_no_graphics_cards() {
        QVERIFY(help_text().find("no task runs on graphics cards yet") != std::string::npos);
    }

    void log_lines_have_time_level_and_text_and_repeats_are_counted() {
        std::vector<std::string> lines;
        std::chrono::system_clock::time_point now{};
        Log log(
            LogLevel::info, [&](std::string_view line) { lines.emplace_back(line); }, [&] { return now; });
        log.info("hello {}", 7);
        log.debug("not shown");
        for (int i = 0; i < 5; ++i) log.warning("no answer");
        log.info("an answer");
        QCOMPARE(lines.size(), size_t{4});
        QCOMPARE(lines[0], std::string("1970-01-01T00:00:00Z info    hello 7\n"));
        QCOMPARE(lines[1], std::string("1970-01-01T00:00:00Z warning no answer\n"));
        QCOMPARE(lines[2], std::string("1970-01-01T00:00:00Z warning (the last line came 4 more times)\n"));
        for (int i = 0; i < 3; ++i) {
            log.error("again");
            now += std::chrono::minutes(11);
        }
        QCOMPARE(lines.size(), size_t{7});  // a trouble that lasts is told every ten minutes
    }

    void refusals_say_what_to_do_next_where_the_lab_does_not() {
        const auto refusal = [](int status, const std::string& code) {
            ResponseHead head;
            head.status = status;
            head.fields.push_back({"retry-after", "7"});
            return refusal_of(head, encode_message(ErrorReply{code, "said"}));
        };
        QCOMPARE(refusal(403, "token").action, RefusalAction::stop);
        QCOMPARE(refusal(403, "token").text(), std::string("said"));
        QCOMPARE(refusal(403, "signature").text(), std::string("said; update this program or the lab node"));
        QCOMPARE(refusal(401, "credential").action, RefusalAction::forget);
        QCOMPARE(refusal(426, "version").action, RefusalAction::update);
        QCOMPARE(refusal(409, "copied").action, RefusalAction::stop);
        QCOMPARE(refusal(409, "complete").action, RefusalAction::drop_blob);
        QCOMPARE(refusal(403, "pending").action, RefusalAction::wait_for_lab);
        QCOMPARE(refusal(503, "something new").action, RefusalAction::try_again);
        QCOMPARE(refusal(503, "busy").retry_after_ms, uint64_t{7000});
    }
    void a_refusal_that_is_no_message_is_told_by_its_status() {
        ResponseHead head;
        head.status = 302;
        QVERIFY(refusal_of(head, {}).text().find("redirects") != std::string::npos);
        head.status = 502;
        const std::string page = "<html>\x1b[31m</html>";
        QCOMPARE(refusal_of(head, {reinterpret_cast<const uint8_t*>(page.data()), page.size()}).message,
                 std::string("the lab answered with HTTP status 502 and no reason"));
        head.status = 401;
        QCOMPARE(
            refusal_of(head, {}).text(),
            std::string("the lab answered with HTTP status 401 and no reason; the lab no longer knows this "
                        "computer: join again with a new link"));
    }
};

QTEST_APPLESS_MAIN(TestWorkerTexts)
#include "test_worker_texts.moc"
