// Invitations, enrolments, names: who may join, and what is said to who may not.
#include <QTest>

#include "core/work/plain_text.hpp"
#include "fake_lab.hpp"

namespace goblin::lab {

namespace {

constexpr uint64_t wall_ms = 1'000'000'000'000;

// A volunteer's side of an enrolment.
struct Newcomer {
    VolunteerSeed seed = random_bytes<VolunteerSeed>();
    FixedBytes<16> computer = random_bytes<FixedBytes<16>>();
    std::string name = "newcomer";
};

}  // namespace

class TestContributors : public QObject {
    Q_OBJECT

  private slots:
    void init() {
        journal_ = std::make_unique<FakeJournal>();
        contributors_ =
            std::make_unique<Contributors>(EnrolmentRules{lab_key(), nonce_secret(), false, 5}, *journal_);
        token_ = {1, 2, 3};
        invitation_ = contributors_->invite(token_, 1, wall_ms, 1'000, false).id;
        now_ms_ = 5'000'000;
        address_ = "192.0.2.1";
    }

    void a_newcomer_gets_a_credential_and_is_found_by_it() {
        const EnrolReply reply = accepted(Newcomer());
        QVERIFY(reply.approved);
        LiveComputer* const computer = contributors_->by_credential(reply.credential);
        QVERIFY(computer);
        QCOMPARE(computer->record.name, std::string("newcomer"));
        QVERIFY(contributors_->why_not(*computer).empty());
        Credential other = reply.credential;
        other[0] ^= 1;
        QVERIFY(contributors_->by_credential(other) == nullptr);
    }

    void neither_token_nor_credential_is_kept_as_it_is() {
        const EnrolReply reply = accepted(Newcomer());
        QVERIFY(journal_->invitations.at(invitation_).token_hash == sha256(token_));
        QVERIFY(journal_->computers.begin()->second.credential_hash == sha256(reply.credential));
    }

    void a_wrong_token_is_refused_with_the_next_step() {
        token_ = {9, 9};
        const Refusal refusal = refused(Newcomer());
        QCOMPARE(refusal.status, 403);
        QVERIFY(refusal.error.message.find("ask the lab for a new link") != std::string::npos);
    }

    void a_flood_of_wrong_tokens_is_slowed_down_by_network_but_the_right_one_still_works() {
        const Bytes right = token_;
        token_ = {9, 9};
        for (int i = 0; i < 5; ++i) QCOMPARE(refused(Newcomer()).status, 403);
        const Refusal refusal = refused(Newcomer());
        QCOMPARE(refusal.status, 429);
        QVERIFY(refusal.retry_after_ms > 0);
        address_ = "192.0.2.77";  // the same /24
        QCOMPARE(refused(Newcomer()).status, 429);
        address_ = "198.51.100.1";
        QCOMPARE(refused(Newcomer()).status, 403);
        token_ = right;
        address_ = "192.0.2.1";
        QVERIFY(accepted(Newcomer()).approved);
        token_ = {9, 9};
        now_ms_ += 61'000;
        QCOMPARE(refused(Newcomer()).status, 403);
    }

    void an_expired_invitation_says_so() {
        expiry_passed_ = true;
        QVERIFY(refused(Newcomer()).error.message.find("expired") != std::string::npos);
        expiry_passed_ = false;
    }

    void a_used_up_invitation_says_so() {
        (void)accepted(Newcomer());
        QVERIFY(refused(Newcomer()).error.message.find("used up") != std::string::npos);
    }

    void a_revoked_invitation_is_refused_and_who_joined_stays() {
        const EnrolReply joined = accepted(Newcomer());
        QVERIFY(contributors_->revoke(invitation_));
        QVERIFY(refused(Newcomer()).error.message.find("revoked") != std::string::npos);
        QVERIFY(contributors_->by_credential(joined.credential));
        QVERIFY(!contributors_->revoke(99));
    }

    void an_interrupted_enrolment_may_be_repeated_without_using_the_invitation_up() {
        const Newcomer newcomer;
        const EnrolReply first = accepted(newcomer);
        const EnrolReply second = accepted(newcomer);
        QVERIFY(contributors_->by_credential(first.credential) == nullptr);
        QVERIFY(contributors_->by_credential(second.credential));
        QCOMPARE(contributors_->computers().size(), size_t{1});
    }

    void another_computer_of_the_same_volunteer_needs_a_use_of_its_own() {
        Newcomer newcomer;
        (void)accepted(newcomer);
        newcomer.computer = random_bytes<FixedBytes<16>>();
        QVERIFY(refused(newcomer).error.message.find("used up") != std::string::npos);
        token_ = {4};
        (void)contributors_->invite(token_, 1, wall_ms, 1'000, false);
        (void)accepted(newcomer);
        QCOMPARE(contributors_->computers().size(), size_t{2});
        QCOMPARE(journal_->volunteers.size(), size_t{1});
    }

    void a_signature_of_another_key_is_refused() {
        EnrolRequest request = signed_request(Newcomer());
        request.volunteer_key[0] ^= 1;
        QCOMPARE(answer_to(request).error.code, std::string("signature"));
        QCOMPARE(contributors_->invitations().at(invitation_).uses_left, uint64_t{1});
    }

    void a_signature_for_another_lab_or_token_is_refused() {
        const Newcomer newcomer;
        const VolunteerIdentity identity(newcomer.seed, lab_key());
        EnrolRequest request = signed_request(newcomer);
        Digest other_lab = lab_key();
        other_lab.bytes[0] ^= 1;
        request.signature = identity.sign(enrolment_statement(other_lab, request.token, request.nonce));
        QCOMPARE(answer_to(request).error.code, std::string("signature"));
        request.signature = identity.sign(enrolment_statement(lab_key(), Bytes{7}, request.nonce));
        QCOMPARE(answer_to(request).error.code, std::string("signature"));
    }

    void a_nonce_is_good_for_ten_minutes_and_can_not_be_made_up() {
        EnrolRequest request = signed_request(Newcomer());
        now_ms_ += 600'001;
        QCOMPARE(answer_to(request).error.code, std::string("nonce"));
        request = signed_request(Newcomer());
        request.nonce.back() ^= 1;
        QCOMPARE(answer_to(request).error.code, std::string("nonce"));
        request.nonce.clear();
        QCOMPARE(answer_to(request).error.code, std::string("nonce"));
    }

    void a_banned_volunteer_can_not_join_again() {
        Newcomer newcomer;
        const EnrolReply reply = accepted(newcomer);
        LiveComputer& computer = *contributors_->by_credential(reply.credential);
        contributors_->set_state(contributors_->volunteer(computer.record.volunteer), MemberState::banned);
        QVERIFY(contributors_->why_not(computer).find("banned") != std::string::npos);
        QCOMPARE(refused(newcomer).error.code, std::string("banned"));
        newcomer.computer = random_bytes<FixedBytes<16>>();
        QCOMPARE(refused(newcomer).error.code, std::string("banned"));
    }

    void a_banned_computer_stays_banned_when_it_joins_again() {
        const Newcomer newcomer;
        LiveComputer& computer = *contributors_->by_credential(accepted(newcomer).credential);
        contributors_->set_state(computer, MemberState::banned);
        (void)answer(signed_request(newcomer));
        QVERIFY(contributors_->why_not(computer).find("banned") != std::string::npos);
    }

    void where_a_person_approves_newcomers_wait() {
        contributors_ =
            std::make_unique<Contributors>(EnrolmentRules{lab_key(), nonce_secret(), true, 5}, *journal_);
        (void)contributors_->invite(token_, 1, wall_ms, 1'000, false);
        const EnrolReply reply = accepted(Newcomer());
        QVERIFY(!reply.approved);
        LiveComputer& computer = *contributors_->by_credential(reply.credential);
        QVERIFY(contributors_->why_not(computer).find("approve") != std::string::npos);
        contributors_->set_state(contributors_->volunteer(computer.record.volunteer), MemberState::approved);
        QVERIFY(contributors_->why_not(computer).empty());
    }

    void a_forgotten_computer_is_unknown() {
        const EnrolReply reply = accepted(Newcomer());
        contributors_->forget(contributors_->by_credential(reply.credential)->record.id);
        QVERIFY(contributors_->by_credential(reply.credential) == nullptr);
        QVERIFY(journal_->computers.empty());
    }

    void the_number_of_a_forgotten_computer_is_never_given_to_another() {
        const ComputerId forgotten = contributors_->by_credential(accepted(Newcomer()).credential)->record.id;
        contributors_->forget(forgotten);
        token_ = {4};
        (void)contributors_->invite(token_, 1, wall_ms, 1'000, false);
        const EnrolReply newcomer = accepted(Newcomer());
        QCOMPARE(contributors_->by_credential(newcomer.credential)->record.id, forgotten + 1);
    }

    void a_number_that_was_given_before_a_restart_is_not_given_again() {
        contributors_->load({}, {}, {}, 41);
        const EnrolReply newcomer = accepted(Newcomer());
        QCOMPARE(contributors_->by_credential(newcomer.credential)->record.id, ComputerId{42});
    }

    void names_keep_nothing_that_steers_a_terminal_or_the_direction_of_text_data() {
        QTest::addColumn<QByteArray>("given");
        QTest::addColumn<QByteArray>("kept");
        const auto row = [](const char* what, QByteArray given, QByteArray kept) {
            QTest::newRow(what) << given << kept;
        };
        row("plain", "Zoë's PC", "Zoë's PC");
        row("empty", "", "unnamed");
        row("escape", "a\x1b[2Jb", "a?[2Jb");
        row("NUL", QByteArray("a\0b", 3), "a?b");
        row("newline and tab", "a\nb\tc", "a?b?c");
        row("delete",
            "a\x7f"
            "b",
            "a?b");
        row("C1 control",
            "a\xc2\x9b"
            "b",
            "a?b");
        row("right-to-left override",
            "a\xe2\x80\xae"
            "b",
            "a?b");
        row("isolates",
            "a\xe2\x81\xa6"
            "b\xe2\x81\xa9",
            "a?b?");
        row("Arabic letter mark",
            "a\xd8\x9c"
            "b",
            "a?b");
        row("line separator",
            "a\xe2\x80\xa8"
            "b",
            "a?b");
        row("zero width",
            "a\xe2\x80\x8b"
            "b\xef\xbb\xbf"
            "c\xe2\x81\xa0",
            "a?b?c?");
        row("tags",
            "a\xf3\xa0\x81\x81"
            "b",
            "a?b");
        row("markup stays text", "<script>\"'&../", "<script>\"'&../");
        row("64 characters", QByteArray(70, 'x'), QByteArray(64, 'x'));
        row("64 characters of several bytes", QByteArray("é").repeated(70), QByteArray("é").repeated(64));
    }
    void names_keep_nothing_that_steers_a_terminal_or_the_direction_of_text() {
        QFETCH(QByteArray, given);
        QFETCH(QByteArray, kept);
        QCOMPARE(QByteArray::fromStdString(printable_name(given.toStdString())), kept);
    }

    void a_network_is_a_24_of_ipv4_and_a_48_of_ipv6() {
        const auto network = [](const char* address) { return network_of({address, false}); };
        QCOMPARE(network("192.0.2.1"), network("192.0.2.254"));
        QVERIFY(network("192.0.2.1") != network("192.0.3.1"));
        QCOMPARE(network("2001:db8:1:2::1"), network("2001:db8:1:ffff::9"));
        QVERIFY(network("2001:db8:1::1") != network("2001:db8:2::1"));
        QVERIFY(network_of({"127.0.0.1", true}).empty());
    }

  private:
    static Digest lab_key() { return sha256(Bytes{1}); }
    static SecretKey nonce_secret() { return sha256(Bytes{2}).bytes; }

    EnrolRequest signed_request(const Newcomer& newcomer) {
        const VolunteerIdentity identity(newcomer.seed, lab_key());
        EnrolRequest request;
        request.token = token_;
        request.volunteer_key = identity.public_key();
        request.nonce = Contributors::fresh_nonce(nonce_secret(), now_ms_);
        request.signature = identity.sign(enrolment_statement(lab_key(), token_, request.nonce));
        request.computer = newcomer.computer;
        request.computer_name = newcomer.name;
        return request;
    }
    Answer<EnrolReply> answer(const EnrolRequest& request) {
        return contributors_->enrol({address_, false}, request, now_ms_,
                                    expiry_passed_ ? wall_ms + 1'000 : wall_ms);
    }
    Refusal answer_to(const EnrolRequest& request) { return std::get<Refusal>(answer(request)); }
    EnrolReply accepted(const Newcomer& newcomer) {
        return std::get<EnrolReply>(answer(signed_request(newcomer)));
    }
    Refusal refused(const Newcomer& newcomer) { return answer_to(signed_request(newcomer)); }

    std::unique_ptr<FakeJournal> journal_;
    std::unique_ptr<Contributors> contributors_;
    Bytes token_;
    InvitationId invitation_ = 0;
    uint64_t now_ms_ = 0;
    std::string address_;
    bool expiry_passed_ = false;
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestContributors)
#include "test_contributors.moc"
