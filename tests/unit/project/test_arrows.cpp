// Who may include whom: the tables of docs/architecture.md, lowest folder first, are what the sources do.
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

namespace {

QString text_of(const QString& path) {
    QFile file(QStringLiteral(GOBLIN_SOURCE_DIR "/") + path);
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot open %s", qPrintable(file.fileName()));
    return QString::fromUtf8(file.readAll());
}

// The folders of the table under "### Inside PART".
QStringList layers_of(const QString& part) {
    QStringList layers;
    const QString document = text_of("docs/architecture.md");
    const auto start = document.indexOf("### Inside " + part + "\n");
    if (start < 0) return layers;
    static const QRegularExpression row("^\\| `([a-z_]+)/`");
    for (const QString& line : document.mid(start).split('\n').mid(2)) {
        if (!line.startsWith('|')) break;
        if (const auto match = row.match(line); match.hasMatch()) layers << match.captured(1);
    }
    return layers;
}

QStringList sources_of(const QString& part) {
    QStringList sources;
    const QDir root(QStringLiteral(GOBLIN_SOURCE_DIR));
    QDirIterator files(root.filePath(part), {"*.cpp", "*.hpp"}, QDir::Files, QDirIterator::Subdirectories);
    while (files.hasNext()) sources << root.relativeFilePath(files.next());
    return sources;
}

QStringList includes_of(const QString& source) {
    QStringList includes;
    static const QRegularExpression line("^#include [<\"]([^>\"]+)[>\"]",
                                         QRegularExpression::MultilineOption);
    for (auto matches = line.globalMatch(text_of(source)); matches.hasNext();)
        includes << matches.next().captured(1);
    return includes;
}

// "schedule" of "labcli/schedule/job.hpp"; empty for a file of the part itself.
QString folder_of(const QString& path) {
    const QStringList steps = path.split('/');
    return steps.size() > 2 ? steps[1] : QString();
}

}  // namespace

class TestArrows : public QObject {
    Q_OBJECT
  private slots:
    void every_folder_is_in_its_table_and_uses_only_those_above_it_data() {
        QTest::addColumn<QString>("part");
        for (const char* part : {"core", "labcli"}) QTest::newRow(part) << part;
    }

    void every_folder_is_in_its_table_and_uses_only_those_above_it() {
        QFETCH(const QString, part);
        const QStringList layers = layers_of(part);
        QVERIFY(layers.size() > 3);
        QStringList wrong;
        for (const QString& source : sources_of(part)) {
            const QString folder = folder_of(source);
            if (!folder.isEmpty() && !layers.contains(folder))
                wrong << source + ": its folder isn't in the table";
            for (const QString& include : includes_of(source)) {
                if (!include.startsWith(part + '/')) continue;
                if (layers.indexOf(folder_of(include)) > layers.indexOf(folder))
                    wrong << source + " includes " + include;
            }
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void parts_use_what_is_below_them_data() {
        QTest::addColumn<QString>("part");
        QTest::addColumn<QStringList>("never");
        QTest::newRow("core") << "core" << QStringList{"labcli/", "app/", "tests/", "Q", "boost/", "sqlite"};
        QTest::newRow("labcli") << "labcli" << QStringList{"app/", "tests/", "Q"};
        QTest::newRow("app") << "app" << QStringList{"labcli/", "tests/", "boost/", "sqlite"};
    }

    void parts_use_what_is_below_them() {
        QFETCH(const QString, part);
        QFETCH(const QStringList, never);
        const QStringList sources = sources_of(part);
        QVERIFY(sources.size() > 10);
        QStringList wrong;
        for (const QString& source : sources)
            for (const QString& include : includes_of(source))
                for (const QString& start : never)
                    if (include.startsWith(start)) wrong << source + " includes " + include;
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }
};

QTEST_APPLESS_MAIN(TestArrows)
#include "test_arrows.moc"
