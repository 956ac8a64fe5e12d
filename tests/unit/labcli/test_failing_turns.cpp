// A lab node in which something throws: whoever asked is answered, and nothing half done is kept.
#include <QTest>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "labcli/node/job_verbs.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/product_files.hpp"
#include "tests/unit/labcli/real_lab.hpp"

namespace goblin::lab {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds patience(60);  // the service gives up after 90 s

Volunteer a_volunteer() {
    Volunteer volunteer;
    volunteer.id = 1;
    volunteer.public_key[0] = 1;
    return volunteer;
}

}  // namespace

class TestFailingTurns : public QObject {
    Q_OBJECT

    std::unique_ptr<RealLab> lab_;
    const Credential credential_ = random_bytes<Credential>();

    Computer a_computer() const {
        Computer computer;
        computer.id = 1;
        computer.volunteer = 1;
        computer.credential_hash = sha256(credential_);
        return computer;
    }
    Answer<ExchangeReply> exchange(ExchangeRequest request) const {
        auto answered = std::make_shared<std::promise<Answer<ExchangeReply>>>();
        std::future<Answer<ExchangeReply>> answer = answered->get_future();
        Caller caller;
        caller.credential = credential_;
        lab_->node().exchange(caller, std::move(request), [answered](Answer<ExchangeReply> given) {
            answered->set_value(std::move(given));
        });
        answered.reset();
        if (answer.wait_for(patience) != std::future_status::ready) throw std::runtime_error("no answer");
        return answer.get();
    }
    // For one that is over, the lab reads its database.
    static ExchangeRequest that_looks_up(AssignmentNumber number) {
        ExchangeRequest request;
        request.holding = {make_assignment_id(number)};
        return request;
    }
    std::vector<std::string> history(JobId job) const {
        Store store(lab_->database(), [](const std::string&) {});
        std::vector<std::string> lines;
        for (const HistoryLine& line : store.history(job, 100)) lines.push_back(line.text);
        return lines;
    }

  private slots:
    void init() { lab_ = std::make_unique<RealLab>(); }

    void an_exchange_that_throws_is_answered_and_the_next_one_goes_on() {
        {
            Store store(lab_->database(), [](const std::string&) {});
            store.volunteer(a_volunteer());
            store.computer(a_computer());
            for (AssignmentNumber number = 1; number <= 3; ++number) {
                Assignment assignment;
                assignment.number = number;
                assignment.id = make_assignment_id(number);
                assignment.job = 1;
                assignment.computer = 1;
                store.assignment_issued(assignment);
            }
        }
        lab_->start();
        QVERIFY(std::holds_alternative<ExchangeReply>(exchange(that_looks_up(1))));
        Database(lab_->database()).execute("ALTER TABLE assignment RENAME TO gone");
        const Answer<ExchangeReply> answer = exchange(that_looks_up(2));
        QVERIFY(std::holds_alternative<Refusal>(answer));
        QCOMPARE(std::get<Refusal>(answer).status, 500);
        QVERIFY(lab_->logged("a fault in the lab node itself"));
        Database(lab_->database()).execute("ALTER TABLE gone RENAME TO assignment");
        QVERIFY(std::holds_alternative<ExchangeReply>(exchange(that_looks_up(3))));
        QCOMPARE(lab_->fatal(), std::string());
    }

    void a_turn_that_throws_after_a_change_stops_the_lab_node_and_keeps_nothing_of_it() {
        LabNode& node = lab_->start();
        node.administer([](LabNode::Parts parts) {
            parts.store.event(1, "whole");
            return 0;
        });
        const auto half_a_turn = [](LabNode::Parts parts) -> int {
            parts.store.event(1, "half");
            throw std::runtime_error("in the middle");
        };
        QVERIFY_EXCEPTION_THROWN(node.administer(half_a_turn), std::runtime_error);
        QVERIFY(lab_->fatal().find("in the middle") != std::string::npos);
        // It takes nothing more: what it has in memory isn't what is on disk.
        QVERIFY_EXCEPTION_THROWN(job_list(node, {}), Error);
        const Answer<ExchangeReply> answer = exchange({});
        QVERIFY(std::holds_alternative<Refusal>(answer));
        QCOMPARE(std::get<Refusal>(answer).status, 500);
        lab_->stop();
        QCOMPARE(history(1), (std::vector<std::string>{"whole"}));
        lab_->start();
        QCOMPARE(job_list(lab_->node(), {}).size(), size_t{0});
    }

    void what_an_administrators_mistake_throws_stops_nothing() {
        LabNode& node = lab_->start();
        VERIFY_REFUSED(job_status(node, {{"id", 7}}), "expected a job of this lab");
        QCOMPARE(job_list(node, {}).size(), size_t{0});
        QCOMPARE(lab_->fatal(), std::string());
    }

    void a_job_that_can_not_be_kept_leaves_no_output_behind() {
        const test::TemporaryFolder folder;
        const test::ProductFiles files(folder.path(), "p", test::random_matrix(DType::i32, 8, 4, 1),
                                       test::random_matrix(DType::i32, 4, 8, 2));
        LabNode& node = lab_->start();
        Database(lab_->database()).execute("ALTER TABLE job RENAME TO gone");
        const json submission = {
            {"kind", "product"},
            {"arguments",
             {{"a", files.a().string()}, {"b", files.b().string()}, {"output", files.output().string()}}}};
        VERIFY_REFUSED(job_submit(node, submission), "expected the lab's database to keep the change");
        QVERIFY(!files.partial());
        QVERIFY(!std::filesystem::exists(files.output()));
    }

    void a_lab_that_can_not_start_ends_its_threads() {
        lab_->start();
        lab_->stop();
        Database(lab_->database()).execute("ALTER TABLE job DROP COLUMN spec");
        QVERIFY_EXCEPTION_THROWN(lab_->start(), Error);
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestFailingTurns)
#include "test_failing_turns.moc"
