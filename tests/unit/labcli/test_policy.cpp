// What each verification policy promises, and what --max-wrong refuses.
#include <QFile>
#include <QTest>

#include <cmath>

#include "labcli/records/policy.hpp"
#include "tests/support/error_of.hpp"

namespace goblin::lab {

class TestPolicy : public QObject {
    Q_OBJECT

  private slots:
    void every_policy_has_a_name_that_leads_back_to_it() {
        for (const PolicyInfo& row : all_policies()) {
            QVERIFY(policy_from_name(row.name) == row.policy);
            QCOMPARE(find_policy(row.policy), &row);
            QVERIFY(!row.promise(2, true).empty() && row.wrong(2, true) <= row.wrong(2, false));
        }
        QCOMPARE(policy_names(), std::string("auto, redundant, recompute or product"));
        QCOMPARE(QString::fromUtf8(name_of(Policy::automatic).data()), QString("auto"));
        QVERIFY(!policy_from_name("automatic"));
        QVERIFY(!policy_from_name(""));
    }

    void stored_values_never_change() {
        QCOMPARE(static_cast<int>(Policy::automatic), 0);
        QCOMPARE(static_cast<int>(Policy::redundant), 1);
        QCOMPARE(static_cast<int>(Policy::recompute), 2);
        QCOMPARE(static_cast<int>(Policy::product), 3);
    }

    void a_value_of_another_version_promises_nothing() {
        const auto other = static_cast<Policy>(200);
        QCOMPARE(QString::fromUtf8(name_of(other).data()), QString("unknown"));
        QCOMPARE(wrong_result_probability(other, 2, true), 1.0);
        QCOMPARE(promise_text(other, 2, true), std::string("nothing is promised"));
    }

    void every_policy_is_documented() {
        QFile file(GOBLIN_SOURCE_DIR "/docs/protocol.md");
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.errorString()));
        const QString document = QString::fromUtf8(file.readAll());
        for (const PolicyInfo& row : all_policies()) {
            const std::string start = fmt::format("\n| `{}` | {} | ", row.name, row.summary);
            QVERIFY2(document.contains(QString::fromStdString(start)), start.c_str());
        }
    }

    void agreement_of_m_is_wrong_when_all_m_conspire() {
        for (uint64_t m = 2; m <= largest_replicas; ++m)
            QVERIFY(std::abs(wrong_result_probability(Policy::redundant, m, true) /
                                 std::pow(0.1, static_cast<double>(m)) -
                             1) < 1e-9);
    }

    void recomputing_is_never_wrong() {
        QCOMPARE(wrong_result_probability(Policy::recompute, 2, false), 0.0);
    }

    void a_trusted_machines_own_results_are_told_to_be_taken_as_they_are() {
        const std::string promise = promise_text(Policy::recompute, 2, false);
        QVERIFY2(promise.find("machine that it trusts") != std::string::npos &&
                     promise.find("taken as it is") != std::string::npos,
                 promise.c_str());
    }

    void the_product_check_promises_bits_of_integers_only() {
        QVERIFY(wrong_result_probability(Policy::product, 2, true) < 1e-6);
        QCOMPARE(wrong_result_probability(Policy::product, 2, false), 1.0);
        QVERIFY(promise_text(Policy::product, 2, false).find("bits are not promised") != std::string::npos);
        QVERIFY(promise_text(Policy::product, 2, true).find("every bit is right") != std::string::npos);
    }

    void rates_are_told_as_people_say_them() {
        const std::pair<double, std::string> rates[] = {{0, "never"},
                                                        {1, "always"},
                                                        {0.5, "1 in 2"},
                                                        {0.3, "1 in 3"},
                                                        {0.1 * 0.1, "1 in 100"},
                                                        {1e-6, "1 in 1,000,000"},
                                                        {std::ldexp(1.0, -20), "1 in 1,048,576"},
                                                        {1e-16, "1 in 10,000,000,000,000,000"},
                                                        {1e-300, "less than 1 in 1,000,000,000,000,000,000"}};
        for (const auto& [probability, text] : rates) QCOMPARE(rate_text(probability), text);
    }

    void what_is_printed_for_redundant_is_the_rate_that_is_computed() {
        QVERIFY(promise_text(Policy::redundant, 2, false).find("1 in 100 times") != std::string::npos);
        QVERIFY(promise_text(Policy::redundant, 6, false).find("1 in 1,000,000 times") != std::string::npos);
        QVERIFY(promise_text(Policy::redundant, 3, false).find("3 volunteers") != std::string::npos);
    }

    void max_wrong_refuses_what_can_not_promise_it_and_names_what_can() {
        expect_promise(Policy::redundant, 2, false, 0.01);
        expect_promise(Policy::redundant, 6, false, 1e-6);
        expect_promise(Policy::recompute, 2, false, 0);
        VERIFY_REFUSED(expect_promise(Policy::redundant, 2, false, 1e-6), "--verify redundant --replicas 6");
        VERIFY_REFUSED(expect_promise(Policy::redundant, 2, false, 1e-6), "--verify recompute");
        VERIFY_REFUSED(expect_promise(Policy::product, 2, false, 0.5), "--verify recompute");
        const QString impossible = error_of([] { expect_promise(Policy::redundant, 2, false, 0); });
        QVERIFY(impossible.contains("--verify recompute") && !impossible.contains("--replicas"));
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestPolicy)
#include "test_policy.moc"
