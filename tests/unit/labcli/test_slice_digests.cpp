// Digests of slices: computed once for all jobs that share an operand, and again for a file that changed.
#include <QTest>

#include "fake_lab.hpp"
#include "labcli/node/slice_digests.hpp"

namespace goblin::lab {

class TestSliceDigests : public QObject {
    Q_OBJECT

    static Digest digest_of(const FakePlan& plan, SliceNumber slice) {
        Tensor whole(plan.slice_spec(slice));
        plan.read_slice(slice, 0, whole.bytes());
        return tensor_digest({}, whole);
    }

  private slots:
    void a_slice_has_the_digest_of_its_numbers() {
        const FakePlan plan(2);
        SliceDigests digests;
        for (const SliceNumber slice : {0, 1, 2})
            QVERIFY(digests.digest(plan, slice) == digest_of(plan, slice));
    }

    void it_is_read_once_for_all_jobs_that_share_the_file() {
        const FakePlan first(2);
        const FakePlan second(2);
        SliceDigests digests;
        const Digest digest = digests.digest(first, 2);
        const uint64_t reads = first.reads;
        QVERIFY(reads > 0);
        QVERIFY(digests.digest(first, 2) == digest);
        QVERIFY(digests.digest(second, 2) == digest);
        QCOMPARE(first.reads.load(), reads);
        QCOMPARE(second.reads.load(), uint64_t{0});
    }

    void a_file_that_changed_is_read_again() {
        const FakePlan before(2);
        FakePlan after(2, DType::i32, 4, 5);  // other numbers
        after.file.ctime_ns = before.file.ctime_ns + 1;
        SliceDigests digests;
        digests.digest(before, 0);
        QVERIFY(digests.digest(after, 0) == digest_of(after, 0));
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestSliceDigests)
#include "test_slice_digests.moc"
