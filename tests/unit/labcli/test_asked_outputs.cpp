// Which outputs a lab takes, and for which tasks they count.
#include <QTest>

#include "fake_lab.hpp"

namespace goblin::lab {

class TestAskedOutputs : public QObject {
    Q_OBJECT

  private slots:
    void an_upload_is_taken_only_for_what_was_committed_and_asked_for() {
        FakeLab lab;
        lab.submit(std::make_shared<FakePlan>(2), Policy::recompute);
        LiveComputer& one = lab.join();
        LiveComputer& two = lab.join();
        const Grant grant = lab.take(one)[0];
        const Digest digest = tensor_digest(grant.key, FakeLab::honest(grant));
        QVERIFY(!lab.desk.find_upload(one, digest));
        lab.tell(one, FakeLab::commitment(grant, FakeLab::honest(grant)));
        const auto place = lab.desk.find_upload(one, digest);
        QVERIFY(place && place->asked && !place->complete);
        QVERIFY(!lab.desk.find_upload(two, digest));
        QVERIFY(!lab.desk.take_upload(two, *place, {FakeLab::honest(grant), nullptr}).empty());
        QCOMPARE(lab.desk.take_upload(one, *place, {FakeLab::honest(grant), nullptr}), std::string());
        QCOMPARE(lab.desk.take_upload(one, *place, {FakeLab::honest(grant), nullptr}),
                 std::string("the numbers had arrived before"));
        lab.run();
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
        QVERIFY(!lab.desk.find_upload(one, digest));
    }

    void equal_outputs_of_one_task_arrive_by_one_upload() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        plan->copies = 3;
        lab.submit(plan, Policy::recompute);
        LiveComputer& one = lab.join();
        const Grant grant = lab.take(one)[0];
        const Tensor numbers = FakeLab::honest(grant);
        Result commitment = FakeLab::commitment(grant, numbers);
        const Digest digest = commitment.digests[0];
        commitment.digests.assign(3, digest);
        lab.tell(one, commitment);
        const auto place = lab.desk.find_upload(one, digest);
        QVERIFY(place && place->asked && !place->complete);
        QCOMPARE(place->outputs, (std::vector<size_t>{0, 1, 2}));
        QCOMPARE(lab.desk.take_upload(one, *place, {numbers.clone(), nullptr}), std::string());
        lab.run();
        QCOMPARE(lab.state(grant), AssignmentState::agreed);
        QVERIFY(plan->merged.at(0).same_bits(numbers));
    }

    void an_output_that_arrived_while_others_are_missing_is_complete() {
        FakeLab lab;
        const auto plan = std::make_shared<FakePlan>(1);
        plan->copies = 2;
        lab.submit(plan, Policy::recompute);
        LiveComputer& liar = lab.join();
        const Grant grant = lab.take(liar)[0];
        Result commitment = FakeLab::commitment(grant, FakeLab::honest(grant));
        commitment.digests.push_back(tensor_digest(grant.key, FakeLab::lie(grant)));
        lab.tell(liar, commitment);
        const auto place = lab.desk.find_upload(liar, commitment.digests[0]);
        QVERIFY(place);
        QCOMPARE(lab.desk.take_upload(liar, *place, {FakeLab::honest(grant), nullptr}), std::string());
        QVERIFY(lab.desk.find_upload(liar, commitment.digests[0])->complete);
        QVERIFY(!lab.desk.take_upload(liar, *place, {FakeLab::honest(grant), nullptr}).empty());
        QVERIFY(!lab.desk.find_upload(liar, commitment.digests[1])->complete);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestAskedOutputs)
#include "test_asked_outputs.moc"
