// The table of limits in docs/protocol.md is the table in the code.
#include <QFile>
#include <QtTest>

#include "core/work/limits.hpp"

using namespace goblin;

namespace {

// As the document shows it: grouped digits, so that a person can read the value.
QString row_of(const LimitInfo& limit) {
    QString digits = QString::number(limit.value);
    for (qsizetype place = digits.size() - 3; place > 0; place -= 3) digits.insert(place, ',');
    const auto text = [](std::string_view part) {
        return QString::fromUtf8(part.data(), static_cast<qsizetype>(part.size()));
    };
    return QString("| `%1` | %2 | %3 | %4 |")
        .arg(text(limit.name), digits, text(limit.unit), text(limit.what));
}

}  // namespace

class TestLimitsDocumented : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase() {
        QFile file(GOBLIN_SOURCE_DIR "/docs/protocol.md");
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.errorString()));
        const QStringList lines = QString::fromUtf8(file.readAll()).split('\n');
        const auto first = lines.indexOf("| limit | value | unit | what it bounds |");
        QVERIFY2(first >= 0, "docs/protocol.md: expected the head of the table of limits, found none");
        for (auto line = first + 2; line < lines.size() && lines[line].startsWith('|'); ++line)
            rows_ << lines[line];
    }

    void every_limit_is_documented_with_its_value() {
        for (const LimitInfo& limit : all_limits())
            QVERIFY2(rows_.contains(row_of(limit)),
                     qPrintable("docs/protocol.md: expected the line\n" + row_of(limit)));
    }

    void nothing_else_is_documented_as_a_limit() {
        QCOMPARE(rows_.size(), static_cast<qsizetype>(all_limits().size()));
    }

  private:
    QStringList rows_;
};

QTEST_APPLESS_MAIN(TestLimitsDocumented)
#include "test_limits_documented.moc"
