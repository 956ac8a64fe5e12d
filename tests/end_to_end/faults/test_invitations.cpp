// Invitations that don't lead into a lab: each is refused with the next step, and nothing is lost: the lab
// and the worker's directory are as good as before.
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/work/link.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct Case {
    const char* name;
    std::string (*link)(LabProcess& lab);
    int exit_code;
    std::vector<std::string> said;
};

std::string unknown(LabProcess& lab) {
    InvitationLink link = InvitationLink::parse(lab.invite());
    link.token[0] ^= 1;
    return link.text();
}

std::string revoked(LabProcess& lab) {
    const Json invitation = lab.ask("invite.create", {{"host", "127.0.0.1"}, {"uses", 1}});
    lab.ask("invite.revoke", {{"id", invitation["id"]}});
    return invitation["link"].get<std::string>();
}

std::string expired(LabProcess& lab) {
    const Json invitation = lab.ask("invite.create", {{"host", "127.0.0.1"}, {"uses", 1}, {"expires_ms", 1}});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return invitation["link"].get<std::string>();
}

std::string used(LabProcess& lab) {
    const std::string link = lab.invite();
    const size_t computers = lab.ask("node.list").size();
    WorkerProcess first({link, WorkerProcess::modest_options("first"), {}, {}});
    lab.wait_for_contributors(computers + 1);
    first.stop();
    return link;
}

std::string cut_short(LabProcess& lab) {
    const std::string link = lab.invite();
    return link.substr(0, link.size() - 3);
}

std::string web_address(LabProcess& lab) {
    return "https" + lab.invite().substr(std::string("goblin").size());
}

int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

const Case cases[] = {
    {"unknown", unknown, 1, {"one it doesn't know or has revoked", "ask the lab for a new link"}},
    {"revoked", revoked, 1, {"one it doesn't know or has revoked", "ask the lab for a new link"}},
    {"expired", expired, 1, {"one that has expired", "ask the lab for a new link"}},
    {"used", used, 1, {"one that has been used up", "ask the lab for a new link"}},
    {"cut short", cut_short, 2, {"--join", "expected an invitation link", "copy the whole link again"}},
    {"a web address", web_address, 2, {"--join", "expected an invitation link", "copy the whole link again"}},
};

}  // namespace

class TestInvitations : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        lab_ = std::make_unique<LabProcess>();
        good_ = std::make_unique<WorkerProcess>(
            WorkerProcess::Settings{lab_->invite(), WorkerProcess::modest_options("good"), {}, {}});
        lab_->wait_for_contributors(1);
        product_ = std::make_unique<ProductFiles>(lab_->files(), "p", random_matrix(DType::i32, 40, 30, 1),
                                                  random_matrix(DType::i32, 30, 50, 2));
    }

    void a_link_that_leads_nowhere_is_refused_with_the_next_step_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(cases); ++i)
            QTest::addRow("%s", cases[i].name) << static_cast<int>(i);
    }
    void a_link_that_leads_nowhere_is_refused_with_the_next_step() {
        QFETCH(int, row);
        const Case& chosen = cases[row];
        const TemporaryFolder folder;
        const std::filesystem::path directory = folder / "worker";
        const std::string link = chosen.link(*lab_);
        const size_t computers = lab_->ask("node.list").size();
        WorkerProcess refused({link, WorkerProcess::modest_options("refused"), {}, directory});
        const std::optional<int> code = refused.process().wait(60'000);
        QVERIFY2(code.has_value(), refused.log().c_str());
        QCOMPARE(*code, chosen.exit_code);
        for (const std::string& text : chosen.said)
            QVERIFY2(has(refused.log(), text), (text + " is missing in: " + refused.log()).c_str());
        if (chosen.exit_code == 1) QCOMPARE(times(refused.log(), "ask the lab"), 1);
        QCOMPARE(lab_->ask("node.list").size(), computers);

        WorkerProcess welcome({lab_->invite(), WorkerProcess::modest_options("welcome"), {}, directory});
        QVERIFY2(wait_until([&] { return lab_->ask("node.list").size() == computers + 1; }),
                 welcome.log().c_str());
        expect_a_job_is_done();
        QCOMPARE(welcome.stop(), 0);
        QVERIFY(good_->running());
    }

    void a_refused_link_leaves_a_lab_that_was_joined_before() {
        QCOMPARE(good_->stop(), 0);
        WorkerProcess again({unknown(*lab_), WorkerProcess::modest_options("good"), {}, good_->directory()});
        QVERIFY2(wait_until([&] { return has(again.log(), "one it doesn't know or has revoked"); }),
                 again.log().c_str());
        expect_a_job_is_done();
        QVERIFY(again.running());
    }

  private:
    void expect_a_job_is_done() {
        std::filesystem::remove(product_->output());
        const uint64_t id = lab_->submit_product(product_->a(), product_->b(), product_->output(),
                                                 {{"verify", "product"}}, "16x16");
        QCOMPARE(lab_->wait_for_job(id)["state"].get<std::string>(), std::string("done"));
        QCOMPARE(product_->wrong_output(), std::string());
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<WorkerProcess> good_;
    std::unique_ptr<ProductFiles> product_;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestInvitations)
#include "test_invitations.moc"
