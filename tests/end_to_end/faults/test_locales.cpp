// Locales change no bit, no file and no `--json`: the same work under tr_TR (where i is no I), bn_BD (with
// other digits and grouping) and de_DE (with a decimal comma) leaves what it leaves under C.
#include <locale.h>
#include <signal.h>

#include <QTest>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/error.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

// What differs between two runs anyway: drawn, measured, or a time.
struct Mask {
    std::regex pattern;
    const char* text;
};
const Mask masks[] = {
    {std::regex("/tmp/goblin-[A-Za-z0-9]{6}"), "FOLDER"},
    {std::regex("goblin://[^ \"\n]+"), "LINK"},
    {std::regex("\"volunteer_key\":\"[^\"]*\""), "KEY"},
    {std::regex("\"[a-z_]*(_at_ms|_since_ms|_s|_flops|bytes|port)\": ?(null|-?[0-9.e+]+)"), "MEASURED"},
    {std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(\\.[0-9]+)?Z?"), "TIME"},
    {std::regex("127\\.0\\.0\\.1:[0-9]+|port [0-9]+"), "PLACE"},
    {std::regex("[0-9.]+ billion operations a second"), "SPEED"},
    {std::regex("\"(key|credential|joined_by)\": ?\"[^\"]*\""), "SECRET"},
    {std::regex("key [A-Za-z0-9_-]{43}"), "KEY"},
    {std::regex("speed [^,]*,"), "SPEED"},
    {std::regex("[0-9.]+ (ms|s|m|min)( ago|\\b)"), "WHILE"},
};

std::string masked(std::string text) {
    for (const Mask& mask : masks) text = std::regex_replace(text, mask.pattern, mask.text);
    return text;
}

// Everything that a run of the programs says and leaves behind, by name.
using Traces = std::map<std::string, std::string>;

}  // namespace

class TestLocales : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        traces_of_c_ = traces_under("C");
        QVERIFY(traces_of_c_.size() > 15);
    }

    void a_locale_changes_nothing_data() {
        QTest::addColumn<QString>("locale");
        for (const char* locale : {"tr_TR", "bn_BD", "de_DE"}) QTest::addRow("%s", locale) << locale;
    }
    void a_locale_changes_nothing() {
        QFETCH(QString, locale);
        const std::string name = locale.toStdString() + ".UTF-8";
        const Finished made = run_program("/usr/bin/localedef", {"--no-archive", "-i", locale.toStdString(),
                                                                 "-f", "UTF-8", (locales_ / name).string()});
        QVERIFY2(fs::exists(locales_ / name / "LC_NUMERIC"), made.errors.c_str());
        setenv("LOCPATH", locales_.path().c_str(), 1);
        const locale_t there = newlocale(LC_ALL_MASK, name.c_str(), nullptr);
        QVERIFY2(there != nullptr, "the system doesn't take the locale that was made for it");
        freelocale(there);
        const Traces traces = traces_under(name);
        for (const auto& [what, text] : traces_of_c_) {
            const auto found = traces.find(what);
            QVERIFY2(found != traces.end(), what.c_str());
            QVERIFY2(found->second == text,
                     (what + ": under C\n" + text + "\nand under " + name + "\n" + found->second).c_str());
        }
        QCOMPARE(traces.size(), traces_of_c_.size());
    }

    void cleanupTestCase() {
        unsetenv("LC_ALL");
        unsetenv("LOCPATH");
    }

  private:
    // Programs that are started from now on find the locale in their environment, as under a user's shell.
    static Traces traces_under(const std::string& locale) {
        setenv("LC_ALL", locale.c_str(), 1);
        setenv("LANG", locale.c_str(), 1);
        Traces traces;
        LabProcess::Settings settings;
        settings.init_options = {"--name", "Iğdır's lab"};
        LabProcess lab(settings);
        const auto keep = [&](const std::string& what, const Finished& finished) {
            traces[what] =
                masked(std::to_string(finished.exit_code) + "\n" + finished.output + finished.errors);
        };
        const auto ask = [&](const std::string& what, std::vector<std::string> arguments) {
            keep(what + " --json", lab.command(arguments));
            arguments.insert(arguments.begin(), {"--dir", lab.directory().string()});
            keep(what, run_program(program("goblin-lab"), arguments));
        };
        WorkerProcess worker({lab.invite(), WorkerProcess::modest_options("İstanbul-i"), {}, {}});
        lab.wait_for_contributors(1);

        const ProductFiles floats(lab.files(), "floats", random_matrix(DType::f32, 300, 70, 1),
                                  random_matrix(DType::f32, 70, 300, 2));
        const ProductFiles integers(lab.files(), "integers", random_matrix(DType::i64, 100, 50, 3),
                                    random_matrix(DType::i64, 50, 100, 4));
        const auto compute = [&](const std::string& name, const ProductFiles& product,
                                 const std::string& policy) {
            const Finished done =
                lab.command({"product", product.a().string(), product.b().string(), "-o",
                             product.output().string(), "--verify", policy, "--tile", "100x100"});
            if (done.exit_code != 0) throw Error(ErrorKind::failed, "the product failed: {}", done.errors);
            traces[name + ".npy"] = text_of_file(product.output());
        };
        compute("floats", floats, "recompute");
        compute("integers", integers, "product");

        const auto idle = [&] { return lab.ask("node.list")[0]["state"] == "idle"; };
        if (!wait_until(idle))
            throw Error(ErrorKind::failed, "expected the contributor to have nothing left");
        ask("job list", {"job", "list"});
        for (const char* id : {"1", "2"}) {
            ask(std::string("job status ") + id, {"job", "status", id});
            ask(std::string("job result ") + id, {"job", "result", id});
        }
        ask("node list", {"node", "list"});
        ask("node show", {"node", "show", "1"});
        ask("invite list", {"invite", "list"});
        ask("invite", {"invite", "--host", "127.0.0.1", "--expires", "1.5d"});
        ask("refusal",
            {"product", floats.a().string(), integers.b().string(), "-o", (lab.files() / "x.npy").string()});
        ask("refused limit",
            {"product", floats.a().string(), floats.b().string(), "-o", (lab.files() / "x.npy").string(),
             "--max-wrong", "1e-30", "--verify", "redundant"});
        keep("accepted limit", lab.command({"product", floats.a().string(), floats.b().string(), "-o",
                                            (lab.files() / "y.npy").string(), "--max-wrong", "0.25"}));
        traces["settings.json"] = masked(text_of_file(lab.directory() / "settings.json"));
        for (const char* command : {"devices", "selftest"})
            for (const bool json : {false, true}) {
                std::vector<std::string> arguments = {command, "--cpu-threads", "1", "--memory", "1GiB"};
                if (json) arguments.push_back("--json");
                const Finished printed = run_program(program("goblin-worker"), arguments);
                if (printed.exit_code != 0) throw Error(ErrorKind::failed, "{}: {}", command, printed.errors);
                keep(std::string("worker ") + command + (json ? " --json" : ""), printed);
            }
        keep("worker --help", run_program(program("goblin-worker"), {"--help"}));
        keep("lab --help", run_program(program("goblin-lab"), {"product", "--help"}));
        worker.stop();
        for (const auto& entry : fs::directory_iterator(worker.directory() / "labs"))
            traces["lab.json"] = masked(text_of_file(entry.path() / "lab.json"));
        return traces;
    }

    TemporaryFolder locales_;
    Traces traces_of_c_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestLocales)
#include "test_locales.moc"
