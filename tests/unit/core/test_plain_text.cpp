// Text from outside, made harmless for terminals, logs and eyes.
#include <QTest>

#include "core/work/plain_text.hpp"

namespace goblin {

class TestPlainText : public QObject {
    Q_OBJECT

  private slots:
    void what_others_say_becomes_plain_text() {
        QCOMPARE(plain_text("products of 3 × 4 <b>bold</b>"), std::string("products of 3 × 4 <b>bold</b>"));
        QCOMPARE(plain_text("a\x1b[2Jb\r\n\tc"), std::string("a\\x1b[2Jb\\x0d\\x0a\\x09c"));
        QCOMPARE(plain_text(std::string_view("a\0b", 3)), std::string("a\\x00b"));
        QCOMPARE(plain_text("abc\u202ecod.exe"), std::string("abc\\u202ecod.exe"));
        QCOMPARE(plain_text("a\u200bb\u0085c"), std::string("a\\u200bb\\x85c"));
        QCOMPARE(plain_text("bad \xff utf \xe4"), std::string("bad \\xff utf \\xe4"));
        QCOMPARE(plain_text(std::string(1000, 'x'), 10), std::string(10, 'x') + "…");
    }

    void our_own_lines_keep_their_ends() {
        QCOMPARE(plain_lines("one\n\ntwo \x1b[2J\n"), std::string("one\n\ntwo \\x1b[2J\n"));
        QCOMPARE(plain_lines(std::string(2000, 'x')), std::string(2000, 'x'));
        QCOMPARE(plain_lines(""), std::string());
    }

    void what_is_plain_is_told_apart() {
        QVERIFY(is_plain("Zoë's <lab> \"/../\""));
        QVERIFY(is_plain(""));
        for (const char* text : {"a\nb", "a\x1b[2J", "a\u202eb", "a\u200b", "a\xff", "a\u009b"})
            QVERIFY2(!is_plain(text), text);
        QVERIFY(!is_plain(std::string_view("a\0b", 3)));
    }
};

}  // namespace goblin

QTEST_APPLESS_MAIN(goblin::TestPlainText)
#include "test_plain_text.moc"
