// Durations and sizes as people write them.
#include <QTest>

#include "core/work/quantity.hpp"
#include "tests/support/error_of.hpp"

namespace goblin {

class TestQuantity : public QObject {
    Q_OBJECT

  private slots:
    void durations_have_a_unit() {
        QCOMPARE(parse_duration_ms("0s"), uint64_t{0});
        QCOMPARE(parse_duration_ms("500ms"), uint64_t{500});
        QCOMPARE(parse_duration_ms("55m"), uint64_t{3'300'000});
        QCOMPARE(parse_duration_ms("7d"), uint64_t{604'800'000});
        for (const char* text :
             {"", "m", "-1s", "1.5h", "10", "10 s", "10S", "99999999999999999999d", "9999999999999d"})
            VERIFY_REFUSED(parse_duration_ms(text), "expected a duration");
    }

    void sizes_are_bytes_unless_they_have_a_unit() {
        QCOMPARE(parse_size_bytes("1000"), uint64_t{1000});
        QCOMPARE(parse_size_bytes("4GiB"), uint64_t{4} << 30);
        QCOMPARE(parse_size_bytes("2GB"), uint64_t{2'000'000'000});
        for (const char* text : {"", "GiB", "-1", "1gib", "0x10", "99999999999TiB"})
            VERIFY_REFUSED(parse_size_bytes(text), "expected a size");
    }

    void they_are_told_in_the_unit_that_fits() {
        QCOMPARE(size_text(12), std::string("12 bytes"));
        QCOMPARE(size_text(1), std::string("1 byte"));
        QCOMPARE(size_text(uint64_t{7} << 29), std::string("3.5 GiB"));
        QCOMPARE(duration_text(1500), std::string("1.5 s"));
        QCOMPARE(duration_text(720'000), std::string("12 min"));
        QCOMPARE(duration_text(59'600), std::string("1 min"));
        QCOMPARE(duration_text(125'000), std::string("2 min 5 s"));
        QCOMPARE(duration_text(3 * 86'400'000 + 4 * 3'600'000), std::string("3 d 4 h"));
        QCOMPARE(flops_text(999), std::string("999 FLOP"));
        QCOMPARE(flops_text(1.1e12), std::string("1.1 TFLOP"));
        QCOMPARE(flops_text(25e9), std::string("25 GFLOP"));
        QCOMPARE(flops_text(1e30), std::string("1000000000000 EFLOP"));
        QCOMPARE(count_text(1, "task"), std::string("1 task"));
        QCOMPARE(count_text(0, "task"), std::string("0 tasks"));
    }
};

}  // namespace goblin

QTEST_APPLESS_MAIN(goblin::TestQuantity)
#include "test_quantity.moc"
