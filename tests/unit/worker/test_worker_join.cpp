// How a worker joins labs, and what ends that.
#include <QtTest>

#include "core/error.hpp"
#include "tests/support/error_of.hpp"
#include "tests/unit/worker/worker_bench.hpp"

using namespace goblin;
using namespace goblin::test;
using State = FakeLab::State;

class TestWorkerJoin : public QObject {
    Q_OBJECT

  private slots:
    void enrolment_is_signed_and_leaves_private_files() {
        FakeLab lab;
        WorkerBench bench;
        bench.settings.name = "the attic";
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        QCOMPARE(lab.enrolments.size(), size_t{1});
        QCOMPARE(lab.enrolments[0].computer_name, std::string("the attic"));
        using std::filesystem::perms;
        for (const char* file : {"seed", "computer", "lock"})
            QVERIFY((std::filesystem::status(bench.directory() / file).permissions() &
                     (perms::group_all | perms::others_all)) == perms::none);
        QVERIFY((std::filesystem::status(bench.lab_folder(lab) / "lab.json").permissions() &
                 (perms::group_all | perms::others_all)) == perms::none);
    }

    void the_same_link_again_goes_on_without_enrolling() {
        FakeLab lab;
        WorkerBench bench;
        const InvitationLink link = lab.link();
        bench.start({link});
        EVENTUALLY(bench, !lab.exchanges.empty());
        bench.end();
        const size_t before = lab.exchanges.size();
        bench.start({link});
        EVENTUALLY(bench, lab.exchanges.size() > before);
        QCOMPARE(lab.enrolments.size(), size_t{1});
        bench.end();
        bench.start({});
        QVERIFY(!bench.running().sessions().empty());
    }

    void a_new_link_of_the_same_lab_enrols_anew() {
        FakeLab lab;
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        bench.end();
        const size_t before = lab.exchanges.size();
        bench.start({lab.link()});
        EVENTUALLY(bench, lab.exchanges.size() > before);
        QCOMPARE(lab.enrolments.size(), size_t{2});
        QCOMPARE(lab.enrolments[0].computer, lab.enrolments[1].computer);
        QCOMPARE(lab.enrolments[0].volunteer_key, lab.enrolments[1].volunteer_key);
    }

    void two_labs_see_two_volunteers() {
        FakeLab one;
        FakeLab two;
        WorkerBench bench;
        bench.start({one.link(), two.link()});
        EVENTUALLY(bench, !one.exchanges.empty() && !two.exchanges.empty());
        QVERIFY(one.enrolments[0].volunteer_key != two.enrolments[0].volunteer_key);
    }

    void a_used_link_is_refused_with_the_next_step() {
        FakeLab lab;
        WorkerBench bench;
        const InvitationLink link = lab.link();
        lab.tokens.clear();
        bench.start({link});
        EVENTUALLY(bench, bench.exit_code.has_value());
        QCOMPARE(*bench.exit_code, 1);
        QVERIFY2(bench.logged("used up; ask the lab for a new link\n"), qPrintable(bench.log_text()));
    }

    void a_refused_new_link_leaves_the_lab_joined_before() {
        FakeLab lab;
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        bench.end();
        const size_t before = lab.exchanges.size();
        const InvitationLink other = lab.link();
        lab.tokens.clear();
        bench.start({other});
        EVENTUALLY(bench, lab.exchanges.size() > before);
    }

    void no_lab_at_all_is_a_clear_error() {
        WorkerBench bench;
        VERIFY_REFUSED(bench.start({}), "join one: goblin-worker --join LINK");
    }

    void approval_is_waited_for_with_the_reason() {
        FakeLab lab;
        lab.approves = false;
        lab.refusals["/v1/exchange"] = {403, "pending"};
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.logged("must approve this computer"));
        EVENTUALLY(bench, bench.logged("said the test; asks again every 3 s"));
        lab.refusals.clear();
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
    }

    void a_forgotten_credential_ends_the_lab_with_the_next_step() {
        FakeLab lab;
        WorkerBench bench;
        lab.refusals["/v1/exchange"] = {401, "credential"};
        const InvitationLink link = lab.link();
        bench.start({link});
        EVENTUALLY(bench, bench.exit_code == 1);
        QVERIFY(bench.logged(": said the test\n"));
        bench.end();
        lab.refusals.clear();
        lab.tokens.insert(link.token);  // a link for several computers: joins again
        bench.start({link});
        EVENTUALLY(bench, lab.enrolments.size() == 2);
        EVENTUALLY(bench, !lab.exchanges.empty());
    }

    void a_copied_directory_is_explained_and_not_asked_for_again() {
        FakeLab lab;
        WorkerBench bench;
        lab.refusals["/v1/exchange"] = {409, "copied"};
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.exit_code == 1);
        QVERIFY(bench.logged(": said the test\n"));
        QCOMPARE(lab.exchanges.size(), size_t{0});
    }

    void a_banned_volunteer_is_told_so() {
        FakeLab lab;
        WorkerBench bench;
        lab.refusals["/v1/exchange"] = {403, "banned"};
        bench.start({lab.link()});
        EVENTUALLY(bench, bench.exit_code == 1);
        QVERIFY(bench.logged(": said the test\n"));
    }

    void another_version_says_which_side_to_update_and_keeps_the_lab() {
        FakeLab lab;
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        lab.versions.contract = contract_version + 1;
        lab.add_product(small_a(), small_b(), true);
        EVENTUALLY(bench, bench.logged("update the contributor"));
        const size_t exchanges = lab.exchanges.size();
        QTest::qWait(1500);
        QCOMPARE(lab.exchanges.size(), exchanges);
        QVERIFY(!bench.exit_code);
    }

    void another_key_at_the_address_gets_no_credential() {
        FakeLab lab;
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        bench.end();
        const uint16_t port = lab.port();
        lab.https.go_away();
        FakeLab impostor;
        impostor.https.close();
        QVERIFY(impostor.https.listen(QHostAddress::LocalHost, port));
        bench.start({});
        EVENTUALLY(bench, bench.logged("expected the lab's key"));
        QVERIFY(impostor.https.handshakes + impostor.https.connections > 0);
        QCOMPARE(impostor.https.plain_bytes, 0);
    }

    void a_changed_key_is_followed_and_the_lab_stays_what_it_is() {
        const Certificate old = make_certificate();
        FakeLab lab(old);
        WorkerBench bench;
        const InvitationLink link = lab.link();
        const std::filesystem::path folder = bench.lab_folder(lab);
        bench.start({link});
        EVENTUALLY(bench, !lab.exchanges.empty());
        const Certificate renewed = make_successor(old);
        lab.change_key(renewed);
        const AssignmentId id = lab.add_product(small_a(), small_b(), true);
        EVENTUALLY(bench, lab.assignment(id).state == State::agreed);
        QVERIFY(bench.logged("has a new key"));
        QVERIFY(worker::load_lab_keys(folder, old.key_digest).front() == renewed.key_digest);
        bench.end();
        // The same link again, one of the new key, and one of the old: still one lab and one computer.
        const InvitationLink newer = lab.link();
        InvitationLink older = lab.link();
        older.lab_key = old.key_digest;
        for (const InvitationLink& each : {link, newer, older}) {
            const size_t before = lab.exchanges.size();
            bench.start({each});
            EVENTUALLY(bench, lab.exchanges.size() > before);
            bench.end();
        }
        QCOMPARE(lab.enrolments.size(), size_t{3});
        for (const EnrolRequest& request : lab.enrolments) {
            QCOMPARE(request.computer, lab.enrolments[0].computer);
            QCOMPARE(request.volunteer_key, lab.enrolments[0].volunteer_key);
        }
    }

    void a_link_made_before_a_change_of_keys_joins() {
        const Certificate old = make_certificate();
        FakeLab lab(old);
        WorkerBench bench;
        const InvitationLink link = lab.link();
        lab.change_key(make_successor(old));
        bench.start({link});
        EVENTUALLY(bench, !lab.exchanges.empty());
        QCOMPARE(lab.enrolments.size(), size_t{1});
    }

    void a_link_with_a_key_not_met_yet_is_known_to_lead_to_a_lab_joined_before() {
        const Certificate old = make_certificate();
        FakeLab lab(old);
        WorkerBench bench;
        bench.start({lab.link()});
        EVENTUALLY(bench, !lab.exchanges.empty());
        bench.end();
        lab.change_key(make_successor(old));
        const InvitationLink link = lab.link();
        bench.start({link});
        EVENTUALLY(bench, bench.logged("joined before by another of its keys"));
        QCOMPARE(lab.enrolments.size(), size_t{1});
        bench.end();
        bench.start({link});
        EVENTUALLY(bench, lab.enrolments.size() == 2);
        QCOMPARE(lab.enrolments[1].computer, lab.enrolments[0].computer);
    }
};

QTEST_GUILESS_MAIN(TestWorkerJoin)
#include "test_worker_join.moc"
