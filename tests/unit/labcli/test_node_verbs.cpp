// What a person does to contributors: approving, banning.
#include <QTest>
#include <nlohmann/json.hpp>

#include "labcli/node/node_verbs.hpp"
#include "tests/unit/labcli/real_lab.hpp"

namespace goblin::lab {

using nlohmann::json;

class TestNodeVerbs : public QObject {
    Q_OBJECT

    std::unique_ptr<RealLab> lab_;

    // A volunteer with computers 1 and 2, and another one with computer 3.
    void start(MemberState volunteers) {
        {
            Store store(lab_->database(), [](const std::string&) {});
            for (const VolunteerId id : {1, 2}) {
                Volunteer volunteer;
                volunteer.id = id;
                volunteer.public_key[0] = static_cast<uint8_t>(id);
                volunteer.state = volunteers;
                store.volunteer(volunteer);
            }
            for (const ComputerId id : {1, 2, 3}) {
                Computer computer;
                computer.id = id;
                computer.volunteer = id < 3 ? 1 : 2;
                computer.mark[0] = static_cast<uint8_t>(id);
                computer.credential_hash.bytes[0] = static_cast<uint8_t>(id);
                store.computer(computer);
            }
        }
        lab_->start();
    }
    QString membership(ComputerId id) {
        return QString::fromStdString(node_show(lab_->node(), {{"id", id}})["membership"].get<std::string>());
    }
    json approve(ComputerId id) { return node_approve(lab_->node(), {{"id", id}}); }
    json ban(ComputerId id, const char* scope) {
        return node_ban(lab_->node(), {{"id", id}, {"scope", scope}});
    }

  private slots:
    void init() { lab_ = std::make_unique<RealLab>(); }

    void approving_a_computer_approves_its_volunteer_with_all_computers() {
        start(MemberState::pending);
        const json approved = approve(1);
        QVERIFY(approved["was"] == "pending" && !approved.contains("next"));
        QCOMPARE(membership(1), QString("approved"));
        QCOMPARE(membership(2), QString("approved"));
        QCOMPARE(membership(3), QString("pending"));
    }

    void a_ban_is_lifted_for_all_computers_and_says_what_the_volunteer_must_do() {
        start(MemberState::approved);
        ban(2, "computer");
        ban(1, "volunteer");
        QCOMPARE(membership(1), QString("banned"));
        QCOMPARE(membership(2), QString("banned"));
        const json lifted = approve(1);
        QVERIFY(lifted["was"] == "banned");
        QVERIFY(lifted["next"].get<std::string>().find("must start") != std::string::npos);
        lab_->stop();
        lab_->start();
        for (const ComputerId id : {1, 2, 3}) QCOMPARE(membership(id), QString("approved"));
    }

    void lifting_the_ban_of_another_computer_says_so_too() {
        start(MemberState::approved);
        ban(2, "computer");
        QVERIFY(approve(1).contains("next"));
        QCOMPARE(membership(2), QString("approved"));
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestNodeVerbs)
#include "test_node_verbs.moc"
