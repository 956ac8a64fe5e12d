// What a shape accepts and refuses.
#include <QtTest>

#include "core/error.hpp"
#include "core/tensor/shape.hpp"

using goblin::Shape;

class TestShape : public QObject {
    Q_OBJECT
  private slots:
    void a_scalar_has_one_element() { QCOMPARE(Shape{}.elements(), 1); }
    void a_zero_axis_empties_the_shape() { QCOMPARE((Shape{3, 0, 5}.elements()), 0); }
    void overflow_is_refused() {
        QVERIFY_EXCEPTION_THROWN((Shape{int64_t{1} << 39, 4}), goblin::Error);
        QVERIFY_EXCEPTION_THROWN((Shape{int64_t{1} << 40, int64_t{1} << 40}), goblin::Error);
    }
    void negative_lengths_are_refused() { QVERIFY_EXCEPTION_THROWN((Shape{2, -1}), goblin::Error); }
    void rank_nine_is_refused() {
        QVERIFY_EXCEPTION_THROWN((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), goblin::Error);
    }
    void text_lists_the_lengths() { QCOMPARE((Shape{1797, 64}.text()), std::string("[1797, 64]")); }
};

QTEST_APPLESS_MAIN(TestShape)
#include "test_shape.moc"
