// Who a volunteer and its computer are to a lab.
#include <QtTest>

#include "core/work/identity.hpp"

using namespace goblin;

namespace {

Digest lab_key(uint8_t fill) {
    Digest key;
    key.bytes.fill(fill);
    return key;
}

}  // namespace

class TestIdentity : public QObject {
    Q_OBJECT
  private slots:
    void one_lab_always_sees_the_same_key_and_computer() {
        QCOMPARE(VolunteerIdentity(seed_, lab_key(1)).public_key(),
                 VolunteerIdentity(seed_, lab_key(1)).public_key());
        QCOMPARE(computer_mark(seed_, lab_key(1), computer_), computer_mark(seed_, lab_key(1), computer_));
    }

    void two_labs_see_nothing_in_common() {
        QVERIFY(VolunteerIdentity(seed_, lab_key(1)).public_key() !=
                VolunteerIdentity(seed_, lab_key(2)).public_key());
        QVERIFY(computer_mark(seed_, lab_key(1), computer_) != computer_mark(seed_, lab_key(2), computer_));
        QVERIFY(computer_mark(seed_, lab_key(1), computer_) != computer_);
    }

    void two_directories_are_two_computers() {
        const auto other = random_bytes<FixedBytes<16>>();
        QVERIFY(computer_mark(seed_, lab_key(1), computer_) != computer_mark(seed_, lab_key(1), other));
    }

    void a_signature_holds_for_its_lab_token_and_nonce_alone() {
        const VolunteerIdentity volunteer(seed_, lab_key(1));
        const auto statement = enrolment_statement(lab_key(1), token_, nonce_);
        const auto signature = volunteer.sign(statement);
        QVERIFY(verify_signature(volunteer.public_key(), statement, signature));
        for (const auto& another : {enrolment_statement(lab_key(2), token_, nonce_),
                                    enrolment_statement(lab_key(1), nonce_, nonce_),
                                    enrolment_statement(lab_key(1), token_, token_)})
            QVERIFY(!verify_signature(volunteer.public_key(), another, signature));
        QVERIFY(!verify_signature(VolunteerIdentity(seed_, lab_key(2)).public_key(), statement, signature));
    }

    // Without the token's length in between, token and nonce could be cut at another place.
    void token_and_nonce_cannot_be_shifted() {
        const std::vector<uint8_t> longer{1, 2, 3};
        const std::vector<uint8_t> shorter{1, 2};
        QVERIFY(enrolment_statement(lab_key(1), longer, shorter) !=
                enrolment_statement(lab_key(1), shorter, std::vector<uint8_t>{3, 1, 2}));
    }

  private:
    const VolunteerSeed seed_ = random_bytes<VolunteerSeed>();
    const FixedBytes<16> computer_ = random_bytes<FixedBytes<16>>();
    const std::vector<uint8_t> token_ = std::vector<uint8_t>(16, 7);
    const std::vector<uint8_t> nonce_ = std::vector<uint8_t>(40, 9);
};

QTEST_APPLESS_MAIN(TestIdentity)
#include "test_identity.moc"
