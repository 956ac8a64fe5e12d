// A lab's settings: what a file may say, what is refused and how, and that the documentation is the table.
#include <QFile>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "labcli/node/lab_directory.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::lab {

using nlohmann::json;

namespace {

QString text(std::string_view part) {
    return QString::fromUtf8(part.data(), static_cast<qsizetype>(part.size()));
}

// "| a | b |", with nothing but the bars around what is empty.
QString row_of(const QStringList& cells) {
    QString row = "|";
    for (const QString& cell : cells) row += cell.isEmpty() ? QString(" |") : " " + cell + " |";
    return row;
}

QString code(const QString& part) {
    return part.isEmpty() ? part : "`" + part + "`";
}

QString documented(const SettingInfo& setting) {
    const json defaults = json_of(LabSettings());
    return row_of({code(text(setting.name)), text(setting.type()),
                   code(text(defaults.at(std::string(setting.name)).dump())), text(setting.range()),
                   code(text(setting.option)), text(setting.what)});
}

LabSettings read(const json& stored) {
    return settings_of(stored, "settings.json: ");
}

}  // namespace

class TestLabSettings : public QObject {
    Q_OBJECT

  private slots:
    void what_is_written_is_read_again() {
        LabSettings settings;
        settings.name = "Zoë's lab";
        settings.contact = "lab@example.org";
        settings.approve_by_hand = true;
        settings.spread_over_networks = false;
        const test::TemporaryFolder folder;
        LabDirectory::create(folder / "lab", settings);
        const LabSettings again = LabDirectory(folder / "lab").settings();
        QVERIFY(json_of(again) == json_of(settings));
    }

    void what_a_file_does_not_name_has_its_default() {
        QVERIFY(json_of(read(json::object())) == json_of(LabSettings()));
        QVERIFY(read({{"approve_by_hand", true}}).approve_by_hand);
    }

    void a_misspelt_setting_is_refused_with_the_one_that_was_meant() {
        const auto refused = [](const char* key) { return error_of([&] { read({{key, true}}); }); };
        QVERIFY2(refused("aprove_by_hand").contains("found 'aprove_by_hand'; was approve_by_hand meant?"),
                 qPrintable(refused("aprove_by_hand")));
        QVERIFY(refused("approve-by-hand").contains("was approve_by_hand meant?"));
        QVERIFY(refused("Name").contains("was name meant?"));
        QVERIFY(refused("").contains("meant?"));
        QVERIFY(refused(std::string(100'000, 'x').c_str()).contains("meant?"));
    }

    void a_value_of_another_type_or_range_is_refused_with_what_was_expected() {
        VERIFY_REFUSED(read({{"approve_by_hand", "true"}}),
                       "settings.json: approve_by_hand: expected true or false, found \"true\"");
        VERIFY_REFUSED(read({{"approve_by_hand", 1}}), "expected true or false, found 1");
        VERIFY_REFUSED(read({{"name", nullptr}}), "name: expected text, found null");
        VERIFY_REFUSED(read({{"name", ""}}), "name: expected 1 to 64 characters, found 0");
        VERIFY_REFUSED(read({{"name", std::string(65, 'n')}}), "expected 1 to 64 characters, found 65");
        VERIFY_REFUSED(read({{"contact", std::string(1025, 'c')}}), "expected 0 to 1024 bytes, found 1025");
        VERIFY_REFUSED(read({{"computes", "a\x1b[2J"}}), "computes: expected plain text");
        VERIFY_REFUSED(read(json::array()), "settings.json: expected settings as JSON");
    }

    void a_lab_with_a_misspelt_setting_is_not_opened() {
        const test::TemporaryFolder folder;
        LabDirectory::create(folder / "lab", LabSettings());
        std::ofstream(folder / "lab" / "settings.json") << R"({"aprove_by_hand": true})";
        VERIFY_REFUSED(LabDirectory(folder / "lab").settings(), "was approve_by_hand meant?");
    }

    void the_documentation_is_the_table() {
        QFile file(GOBLIN_SOURCE_DIR "/docs/lab.md");
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.errorString()));
        QStringList rows;
        for (const QString& line : QString::fromUtf8(file.readAll()).split('\n'))
            if (line.startsWith("| `")) rows << line;
        QStringList expected;
        for (const SettingInfo& setting : all_settings()) expected << documented(setting);
        QCOMPARE(rows, expected);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestLabSettings)
#include "test_lab_settings.moc"
