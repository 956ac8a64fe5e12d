// What people read and write: options, sizes, durations, log lines, a lab's words.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/lab_refusal.hpp"
#include "app/worker/log.hpp"
#include "app/worker/options.hpp"
#include "app/worker/plain_text.hpp"
#include "app/worker/quantity.hpp"
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

    void durations_and_sizes() {
        QCOMPARE(parse_duration_ms("500ms"), uint64_t{500});
        QCOMPARE(parse_duration_ms("55m"), uint64_t{3'300'000});
        QCOMPARE(parse_duration_ms("7d"), uint64_t{604'800'000});
        QCOMPARE(parse_size_bytes("1000"), uint64_t{1000});
        QCOMPARE(parse_size_bytes("2GB"), uint64_t{2'000'000'000});
        for (const char* text :
             {"", "m", "-1s", "1.5h", "10", "10 s", "10S", "99999999999999999999d", "9999999999999d"})
            VERIFY_REFUSED(parse_duration_ms(text), "expected a duration");
        for (const char* text : {"", "GiB", "-1", "1gib", "0x10", "99999999999TiB"})
            VERIFY_REFUSED(parse_size_bytes(text), "expected a size");
        QCOMPARE(size_text(12), std::string("12 bytes"));
        QCOMPARE(size_text(uint64_t{7} << 29), std::string("3.5 GiB"));
        QCOMPARE(duration_text(1500), std::string("1.5 s"));
        QCOMPARE(duration_text(720'000), std::string("12 min"));
    }

    void a_labs_words_become_plain_text() {
        QCOMPARE(plain_text("products of 3 × 4 <b>bold</b>"), std::string("products of 3 × 4 <b>bold</b>"));
        QCOMPARE(plain_text("a\x1b[2Jb\r\n\tc"), std::string("a\\x1b[2Jb\\x0d\\x0a\\x09c"));
        QCOMPARE(plain_text(std::string_view("a\0b", 3)), std::string("a\\x00b"));
        QCOMPARE(plain_text("abc\u202ecod.exe"), std::string("abc\\u202ecod.exe"));
        QCOMPARE(plain_text("a\u200bb\u0085c"), std::string("a\\u200bb\\x85c"));
        QCOMPARE(plain_text("bad \xff utf \xe4"), std::string("bad \\xff utf \\xe4"));
        QCOMPARE(plain_text(std::string(1000, 'x'), 10), std::string(10, 'x') + "…");
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

    void refusals_say_what_to_do_next() {
        const auto refusal = [](int status, const std::string& code) {
            ResponseHead head;
            head.status = status;
            head.fields.push_back({"retry-after", "7"});
            return refusal_of(head, encode_message(ErrorReply{code, "said"}));
        };
        QCOMPARE(refusal(403, "token").action, RefusalAction::stop);
        QCOMPARE(refusal(403, "token").text(), std::string("said; ask the lab for a new invitation link"));
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
                 std::string("HTTP status 502"));
    }
};

QTEST_APPLESS_MAIN(TestWorkerTexts)
#include "test_worker_texts.moc"
