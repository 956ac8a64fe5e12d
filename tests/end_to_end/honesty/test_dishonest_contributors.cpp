// What happens to a contributor that lies or breaks the protocol while honest ones work beside it: a clear
// refusal or a conviction by the referee. `node show` says who it was, the job ends with the right bits,
// nobody honest is blamed.
#include <QTest>

#include <cstring>

#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

// Large enough that numbers go by PUT.
const Job::Settings large_tiles{
    .policy = "recompute", .rows = 300, .depth = 4, .cols = 300, .tile = "150x150"};
const Job::Settings one_large_tile{.rows = 150, .depth = 4, .cols = 150, .tile = "150x150"};

struct NumberLie {
    const char* name;
    void (*tell)(Work& work);
};

const NumberLie number_lies[] = {
    {"wrong numbers",
     [](Work& work) {
         for (float& x : work.outputs[0].as<float>()) x += 1;
     }},
    {"one wrong bit", [](Work& work) { work.outputs[0].bytes().back() ^= std::byte{1}; }},
    {"zeros",
     [](Work& work) { std::memset(work.outputs[0].bytes().data(), 0, work.outputs[0].size_bytes()); }},
    {"the numbers of another task",
     [](Work& work) {
         static Tensor first = work.outputs[0].clone();
         if (first.same_bits(work.outputs[0])) first.as<float>()[0] *= 2;  // of this very task: changed, too
         std::memcpy(work.outputs[0].bytes().data(), first.bytes().data(), first.size_bytes());
     }},
};

}  // namespace

class TestDishonestContributors : public QObject {
    Q_OBJECT

  private slots:
    void a_liar_is_convicted_by_the_referee_data() {
        QTest::addColumn<int>("row");
        QTest::addColumn<QString>("policy");
        for (const char* policy : {"redundant", "recompute", "product"})
            for (size_t i = 0; i < std::size(number_lies); ++i)
                // Policy product promises no bits of floats: a single wrong bit is within its bound.
                if (i != 1 || policy != std::string("product"))
                    QTest::addRow("%s under %s", number_lies[i].name, policy)
                        << static_cast<int>(i) << QString(policy);
    }
    void a_liar_is_convicted_by_the_referee() {
        QFETCH(int, row);
        QFETCH(QString, policy);
        Contributor liar(lab(), QTest::currentDataTag(), number_lies[row].tell);
        Job job(*all_, {.policy = policy.toStdString()});
        QVERIFY(liar.take_task());
        VERIFY_EMPTY(job.end_with({&liar}));
        QVERIFY(!liar.convictions.empty());
        QVERIFY(all_->show(liar)["disagreed"].get<int>() > 0);
        QVERIFY2(all_->disagreements(liar).find("disagreed") != std::string::npos,
                 all_->disagreements(liar).c_str());
        QVERIFY(job.history().find("convicted") != std::string::npos);
    }

    void numbers_that_are_not_what_was_committed_convict() {
        Contributor liar(lab(), "bait and switch");
        Job job(*all_, {.policy = "recompute"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));
        QVERIFY(liar.wait_until_asked(work->id()));
        work->outputs[0].as<float>()[3] += 1;
        QCOMPARE(static_cast<int>(liar.tell(Contributor::data(*work)).kind),
                 static_cast<int>(ReceiptKind::taken));
        VERIFY_EMPTY(job.end_with({&liar}));
        QVERIFY2(
            all_->disagreements(liar).find("don't have the digest that was committed") != std::string::npos,
            all_->disagreements(liar).c_str());
    }

    void anothers_digest_is_of_no_use() {
        // Each assignment has its own key: a digest overheard from an honest contributor fits no other
        // assignment.
        Contributor liar(lab(), "copycat");
        Job job(*all_, {.rows = 8, .cols = 8});
        Work* const honest = all_->alice.take_task();
        Work* const stolen = liar.take_task();
        QVERIFY(honest && stolen);
        Result copied = Contributor::commitment(*honest);
        copied.assignment = stolen->id();
        QCOMPARE(static_cast<int>(liar.tell(copied).kind), static_cast<int>(ReceiptKind::taken));
        stolen->stage = Work::Stage::committed;
        VERIFY_EMPTY(job.end_with({&liar}));
        QVERIFY(all_->show(liar)["disagreed"].get<int>() == 1);
    }

    void numbers_of_another_shape_are_refused() {
        Contributor liar(lab(), "another shape");
        Job job(*all_, {.policy = "recompute"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));
        QVERIFY(liar.wait_until_asked(work->id()));
        work->outputs[0] = Tensor(DType::f32, Shape{4, 16});
        VERIFY_RECEIPT_REFUSED(liar.tell(Contributor::data(*work)), "types and shapes");
        QVERIFY2(all_->disagreements(liar).find("types and shapes") != std::string::npos,
                 all_->disagreements(liar).c_str());
        VERIFY_EMPTY(job.end_well());
    }

    void numbers_that_are_fewer_than_their_shape_says_are_refused() {
        Contributor liar(lab(), "too few");
        Job job(*all_, {.policy = "recompute"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));
        QVERIFY(liar.wait_until_asked(work->id()));
        Result cut = Contributor::data(*work);
        cut.outputs[0].bytes.pop_back();
        VERIFY_RECEIPT_REFUSED(liar.tell(cut), "expected");
        VERIFY_EMPTY(job.end_well());
    }

    void too_many_or_no_digests_and_outputs_are_refused() {
        Contributor liar(lab(), "miscounting");
        Job job(*all_, {.policy = "recompute"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        for (const size_t count : {size_t{0}, size_t{2}}) {
            Result result = Contributor::commitment(*work);
            result.digests.resize(count);
            VERIFY_RECEIPT_REFUSED(liar.tell(result), "expected 1 digests");
        }
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void numbers_before_a_commitment_are_refused() {
        Contributor liar(lab(), "hasty");
        Job job(*all_, {.policy = "recompute"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        VERIFY_RECEIPT_REFUSED(liar.tell(Contributor::data(*work)),
                               "expected a commitment before the numbers");
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void numbers_that_nobody_asked_for_are_refused() {
        Contributor liar(lab(), "unasked");
        Job job(*all_, {.policy = "redundant"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));  // nobody is asked before the second has committed
        VERIFY_RECEIPT_REFUSED(liar.tell(Contributor::data(*work)), "expected to be asked");
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void a_commitment_can_not_be_changed() {
        Contributor liar(lab(), "second thoughts");
        Job job(*all_, {.policy = "redundant"});
        Work* const work = liar.take_task();
        QVERIFY(work);
        const Result first = Contributor::commitment(*work);
        QCOMPARE(static_cast<int>(liar.tell(first).kind), static_cast<int>(ReceiptKind::taken));
        Result other = first;
        other.digests[0].bytes[0] ^= 1;
        VERIFY_RECEIPT_REFUSED(liar.tell(other), "can't be changed");
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void the_same_result_twice_counts_once() {
        Contributor twice(lab(), "twice");
        Job job(*all_, {.policy = "recompute", .rows = 8, .cols = 8});
        Work* const work = twice.take_task();
        QVERIFY(work);
        const Result commitment = Contributor::commitment(*work);
        QCOMPARE(static_cast<int>(twice.tell(commitment).kind), static_cast<int>(ReceiptKind::taken));
        QCOMPARE(static_cast<int>(twice.tell(commitment).kind), static_cast<int>(ReceiptKind::repeated));
        QVERIFY(twice.wait_until_asked(work->id()));
        const Result data = Contributor::data(*work);
        QCOMPARE(static_cast<int>(twice.tell(data).kind), static_cast<int>(ReceiptKind::taken));
        QCOMPARE(static_cast<int>(twice.tell(data).kind), static_cast<int>(ReceiptKind::repeated));
        VERIFY_EMPTY(job.end_well());
        QCOMPARE(static_cast<int>(twice.tell(commitment).kind), static_cast<int>(ReceiptKind::repeated));
        QCOMPARE(static_cast<int>(twice.tell(data).kind), static_cast<int>(ReceiptKind::repeated));
        QCOMPARE(all_->show(twice)["agreed"].get<int>(), 1);
    }

    void results_for_assignments_of_others_are_refused() {
        Contributor thief(lab(), "thief");
        Job job(*all_, {.policy = "redundant"});
        Work* const work = all_->alice.take_task();
        QVERIFY(work);
        const std::string expected = "expected an assignment of this computer";
        VERIFY_RECEIPT_REFUSED(thief.tell(Contributor::commitment(*work)), expected);
        VERIFY_RECEIPT_REFUSED(thief.tell(Contributor::failure(*work, "broken")), expected);
        VERIFY_RECEIPT_REFUSED(thief.tell(Contributor::handing_back(*work)), expected);
        Result invented = Contributor::commitment(*work);
        invented.assignment = random_bytes<AssignmentId>();
        VERIFY_RECEIPT_REFUSED(thief.tell(invented), expected);
        all_->alice.tell(Contributor::commitment(*work));
        VERIFY_HTTP_REFUSED(thief.upload(*work), 404, "expected a digest that this computer committed to");
        VERIFY_EMPTY(job.end_with({&thief}));
    }

    void inputs_of_others_are_not_given_out() {
        Contributor thief(lab(), "curious");
        Job job(*all_, {.policy = "recompute", .rows = 20, .depth = 2000, .cols = 20, .tile = "20x20"});
        Work* const work = all_->alice.take_task();
        QVERIFY(work);
        const Digest input = work->grant.task.inputs[0].digest;
        const uint64_t size_bytes = work->inputs[0].size_bytes();
        VERIFY_HTTP_REFUSED(thief.wire().get_blob(input, size_bytes), 404,
                            "expected an input of an open assignment of this computer");
        VERIFY_EMPTY(job.end_well());
        VERIFY_HTTP_REFUSED(all_->alice.wire().get_blob(input, size_bytes), 404,
                            "expected an input of an open assignment");
    }

    void a_put_into_a_blob_that_is_complete_is_refused() {
        // The other one must hold the verdict up by having to send as well; who is asked first is drawn.
        for (int attempt = 0; attempt < 40; ++attempt) {
            Contributor again(lab(), "once more " + std::to_string(attempt));
            Contributor liar(lab(), "held up " + std::to_string(attempt), number_lies[0].tell);
            Job job(*all_, one_large_tile);
            Work* const work = again.take_task();
            Work* const lie = liar.take_task();
            QVERIFY(work && lie);
            again.tell(Contributor::commitment(*work));
            liar.tell(Contributor::commitment(*lie));
            const auto drawn = [&] {
                again.take(again.exchange(again.request_of({}, 0)));
                liar.take(liar.exchange(liar.request_of({}, 0)));
                return work->stage == Work::Stage::asked || lie->stage == Work::Stage::asked;
            };
            QVERIFY(wait_until(drawn));
            const bool first = work->stage == Work::Stage::asked;
            if (first) {
                QCOMPARE(again.upload(*work), 204);
                VERIFY_HTTP_REFUSED(again.upload(*work), 409, "complete");
            }
            VERIFY_EMPTY(job.end_with({&again, &liar}));
            QCOMPARE(all_->show(again)["disagreed"].get<int>(), 0);
            QCOMPARE(all_->show(liar)["disagreed"].get<int>(), 1);
            if (first) return;
        }
        QFAIL("expected the honest one to be asked first in one of 40 draws, found it never");
    }

    void an_upload_of_other_numbers_convicts() {
        Contributor liar(lab(), "large bait");
        Job job(*all_, large_tiles);
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));
        QVERIFY(liar.wait_until_asked(work->id()));
        const Digest committed = tensor_digest(work->grant.key, work->outputs[0]);
        work->outputs[0].as<float>()[7] = 3;
        QCOMPARE(liar.wire().put_blob(committed, work->outputs[0].bytes()), 204);
        work->stage = Work::Stage::sent;
        VERIFY_EMPTY(job.end_with({&liar}));
        QCOMPARE(all_->show(liar)["disagreed"].get<int>(), 1);
    }

    void an_upload_of_another_size_is_refused() {
        Contributor liar(lab(), "large and longer");
        Job job(*all_, large_tiles);
        Work* const work = liar.take_task();
        QVERIFY(work);
        liar.tell(Contributor::commitment(*work));
        QVERIFY(liar.wait_until_asked(work->id()));
        const Digest committed = tensor_digest(work->grant.key, work->outputs[0]);
        std::vector<std::byte> bytes(work->outputs[0].bytes().begin(), work->outputs[0].bytes().end());
        bytes.resize(bytes.size() + 4);
        VERIFY_HTTP_REFUSED(liar.wire().put_blob(committed, bytes), 413, "expected at most");
        bytes.resize(bytes.size() - 8);
        VERIFY_HTTP_REFUSED(liar.wire().put_blob(committed, bytes), 400, "expected");
        QCOMPARE(liar.upload(*work), 204);
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void an_upload_before_it_is_asked_for_is_refused() {
        Contributor liar(lab(), "large and hasty");
        Job job(*all_, one_large_tile);
        Work* const work = liar.take_task();
        QVERIFY(work);
        VERIFY_HTTP_REFUSED(liar.upload(*work), 404, "committed to");
        liar.tell(Contributor::commitment(*work));
        VERIFY_HTTP_REFUSED(liar.upload(*work), 403, "expected to be asked");
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void garbage_is_refused() {
        Contributor liar(lab(), "noise");
        Job job(*all_, {.policy = "recompute"});
        QVERIFY(liar.take_task());
        const std::vector<uint8_t> noise(1000, 0xa5);
        const Bytes whole = encode_message(liar.request_of({}, 1));
        const std::vector<uint8_t> cut(whole.begin(), whole.end() - 1);
        std::vector<uint8_t> longer(whole);
        longer.push_back(0);
        for (const auto& body : {noise, cut, longer, std::vector<uint8_t>{}}) {
            const HttpReply reply =
                liar.wire().client().request("POST", "/v1/exchange", liar.wire().authorization(), body);
            QCOMPARE(reply.status, 400);
            QVERIFY(decode_message<ErrorReply>(reply.body).message.find("expected") != std::string::npos);
        }
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void a_huge_body_is_refused_before_it_is_read() {
        Contributor liar(lab(), "huge");
        Job job(*all_, {.policy = "recompute"});
        HttpsClient& client = liar.wire().client();
        client.connect();
        client.send("POST /v1/exchange HTTP/1.1\r\nHost: lab\r\n" + liar.wire().authorization() +
                    "Content-Length: 1099511627776\r\n\r\n");
        const HttpReply reply = client.receive();
        QCOMPARE(reply.status, 413);
        client.disconnect();
        VERIFY_EMPTY(job.end_with({&liar}));
    }

    void a_credential_that_is_no_one_s_is_refused() {
        Contributor liar(lab(), "nobody");
        liar.wire().credential.fill(7);
        VERIFY_HTTP_REFUSED(liar.step(), 401, "join again with a new invitation");
    }

    void everybody_honest_is_known_as_honest() {
        for (const Contributor* honest : {&all_->alice, &all_->bob}) {
            QVERIFY(honest->convictions.empty());
            QVERIFY(honest->refusals.empty());
            QVERIFY(all_->disagreements(*honest).empty());
        }
    }

    void initTestCase() { all_ = std::make_unique<LabWithHonestOnes>(); }
    void cleanupTestCase() {
        if (all_) QCOMPARE(all_->lab.stop(), 0);
    }

  private:
    LabProcess& lab() { return all_->lab; }
    std::unique_ptr<LabWithHonestOnes> all_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestDishonestContributors)
#include "test_dishonest_contributors.moc"
