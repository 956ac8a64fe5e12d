// What a contributor may meet at its lab's address: another key (also one with a publicly valid certificate),
// a redirect, a lab node of another version. Each is said with the next step, tells the stranger nothing,
// and loses nothing: when the lab is back, the job goes on.
#include <sys/mount.h>

#include <QTest>
#include <QtGlobal>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/contributor.hpp"
#include "tests/support/lab_ledger.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/worker_process.hpp"
#include "tests/unit/worker/fake_https.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

constexpr int patience_ms = 60'000;
constexpr const char* system_certificates = "/etc/ssl/certs";

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

Certificate certificate_in(const fs::path& certificate, const fs::path& key) {
    Certificate read;
    read.certificate = QSslCertificate(QByteArray::fromStdString(text_of_file(certificate)));
    read.key = QSslKey(QByteArray::fromStdString(text_of_file(key)), QSsl::Ec);
    return read;
}

Finished openssl(std::vector<std::string> arguments) {
    return run_program("/usr/bin/openssl", std::move(arguments));
}

// A certificate for 127.0.0.1 by an authority that this system trusts (in the test's own view of it).
class PublicCertificate {
  public:
    PublicCertificate() {
        mounted_ = mount("tmpfs", system_certificates, "tmpfs", 0, nullptr) == 0;
        openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                 "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key().string(), "-out",
                 certificate().string()});
        if (!mounted_) return;
        std::string hash = openssl({"x509", "-in", certificate().string(), "-noout", "-hash"}).output;
        while (hash.ends_with('\n')) hash.pop_back();
        fs::copy_file(certificate(), fs::path(system_certificates) / (hash + ".0"));
        fs::copy_file(certificate(), fs::path(system_certificates) / "public.pem");
    }
    ~PublicCertificate() {
        if (mounted_) umount2(system_certificates, MNT_DETACH);
    }

    Certificate get() const { return certificate_in(certificate(), key()); }
    // Where the system's certificates can't be changed for a test, programs are told by this.
    std::vector<std::string> environment() const { return {"SSL_CERT_FILE=" + certificate().string()}; }
    bool valid() const {
        const std::vector<std::string> trust =
            mounted_ ? std::vector<std::string>{"-CApath", system_certificates}
                     : std::vector<std::string>{"-CAfile", certificate().string()};
        std::vector<std::string> arguments = {"verify", "-verify_ip", "127.0.0.1"};
        arguments.insert(arguments.end(), trust.begin(), trust.end());
        arguments.push_back(certificate().string());
        return openssl(arguments).exit_code == 0;
    }

  private:
    fs::path certificate() const { return folder_ / "certificate.pem"; }
    fs::path key() const { return folder_ / "key.pem"; }

    TemporaryFolder folder_;
    bool mounted_ = false;
};

// Listens at the lab's port in the lab's place, and gives every request the same answer.
class Stranger {
  public:
    Stranger(Certificate certificate, uint16_t port, FakeReply reply)
        : https_(std::move(certificate),
                 [reply](const FakeRequest&, const FakeHttps::Answer& answer) { answer(reply); }) {
        https_.close();
        if (!https_.listen(QHostAddress::LocalHost, port))
            throw Error(ErrorKind::failed, "expected the lab's port to be free, found it in use");
    }
    ~Stranger() { https_.go_away(); }
    const FakeHttps& https() const { return https_; }

  private:
    FakeHttps https_;
};

FakeReply reply_with(int status, const std::vector<uint8_t>& body) {
    FakeReply reply;
    reply.status = status;
    reply.body = QByteArray(reinterpret_cast<const char*>(body.data()), static_cast<qsizetype>(body.size()));
    return reply;
}

}  // namespace

class TestImpostors : public QObject {
    Q_OBJECT

  private slots:
    void init() {
        lab_ = std::make_unique<LabProcess>();
        product_ = std::make_unique<ProductFiles>(lab_->files(), "p", random_matrix(DType::i32, 96, 64, 1),
                                                  random_matrix(DType::i32, 64, 96, 2));
        public_.reset();
    }
    void cleanup() {
        worker_.reset();
        lab_.reset();
    }

    void another_key_at_the_labs_address_is_told_nothing_data() {
        QTest::addColumn<bool>("publicly_valid");
        QTest::addRow("a certificate of its own making") << false;
        QTest::addRow("a publicly valid certificate") << true;
    }
    void another_key_at_the_labs_address_is_told_nothing() {
        QFETCH(bool, publicly_valid);
        const Certificate certificate = certificate_of(publicly_valid);
        const uint64_t id = start_with_a_job();
        QCOMPARE(lab_->stop(), 0);
        {
            const Stranger stranger(certificate, lab_->port(), reply_with(200, {}));
            worker_->start();
            QTRY_VERIFY2_WITH_TIMEOUT(has(worker_->log(), "expected the lab's key"), worker_->log().c_str(),
                                      patience_ms);
            QVERIFY2(has(worker_->log(), "nothing was sent; ask the lab for a new invitation link"),
                     worker_->log().c_str());
            QVERIFY(stranger.https().connections > 0);
            QCOMPARE(stranger.https().plain_bytes, 0);
        }
        QVERIFY(worker_->running());
        lab_->start();
        expect_done(id);
    }

    void another_key_at_a_links_address_is_told_nothing_data() {
        another_key_at_the_labs_address_is_told_nothing_data();
    }
    void another_key_at_a_links_address_is_told_nothing() {
        QFETCH(bool, publicly_valid);
        const Certificate certificate = certificate_of(publicly_valid);
        const std::string link = lab_->invite();
        QCOMPARE(lab_->stop(), 0);
        {
            const Stranger stranger(certificate, lab_->port(), reply_with(200, {}));
            start_worker(link);
            QTRY_VERIFY_WITH_TIMEOUT(!worker_->running(), patience_ms);
            QVERIFY2(has(worker_->log(), "expected the lab's key"), worker_->log().c_str());
            QCOMPARE(worker_->process().wait(0).value_or(-1), 1);
            QVERIFY(stranger.https().connections > 0);
            QCOMPARE(stranger.https().plain_bytes, 0);
        }
        lab_->start();
        start_worker(link);  // the link is as good as it was
        expect_done(submit());
    }

    void a_redirect_is_not_followed_data() {
        QTest::addColumn<int>("status");
        for (const int status : {301, 308}) QTest::addRow("%d", status) << status;
    }
    void a_redirect_is_not_followed() {
        QFETCH(int, status);
        const uint64_t id = start_with_a_job();
        QCOMPARE(lab_->stop(), 0);
        {
            const FakeHttps elsewhere(the_labs_own(), [](const FakeRequest&, const FakeHttps::Answer&) {});
            FakeReply redirect = reply_with(status, {});
            redirect.fields = {"Location: https://127.0.0.1:" + std::to_string(elsewhere.serverPort()) + "/"};
            const Stranger stranger(the_labs_own(), lab_->port(), redirect);
            worker_->start();
            QTRY_VERIFY2_WITH_TIMEOUT(has(worker_->log(), "redirects elsewhere, which is never followed"),
                                      worker_->log().c_str(), patience_ms);
            QVERIFY2(has(worker_->log(), "ask the lab whether its address has changed"),
                     worker_->log().c_str());
            QCOMPARE(elsewhere.connections, 0);
        }
        QVERIFY(worker_->running());
        lab_->start();
        expect_done(id);
    }

    void a_contributor_of_another_version_is_refused_with_the_side_to_update_data() {
        QTest::addColumn<int>("protocol");
        QTest::addColumn<int>("contract");
        QTest::addColumn<QString>("said");
        QTest::addRow("an older protocol") << -1 << 0 << "at the contributor: update the contributor";
        QTest::addRow("a newer protocol") << 1 << 0 << "at the contributor: update the lab node";
        QTest::addRow("an older contract") << 0 << -1 << "at the contributor: update the contributor";
        QTest::addRow("a newer contract") << 0 << 1 << "at the contributor: update the lab node";
    }
    void a_contributor_of_another_version_is_refused_with_the_side_to_update() {
        QFETCH(QString, said);
        const uint64_t id = start_with_a_job();
        const Refused refused = refusal_of_another_version();
        QCOMPARE(refused.status, 426);
        QCOMPARE(refused.error.code, std::string("version"));
        QVERIFY2(has(refused.error.message, said.toStdString()), refused.error.message.c_str());
        worker_->start();
        expect_done(id);  // others work on
    }

    void a_lab_node_of_another_version_is_explained_and_the_lab_kept_data() {
        QTest::addColumn<int>("protocol");
        QTest::addColumn<int>("contract");
        QTest::addRow("of an older contributor's protocol") << -1 << 0;
        QTest::addRow("of a newer contributor's contract") << 0 << 1;
    }
    void a_lab_node_of_another_version_is_explained_and_the_lab_kept() {
        const uint64_t id = start_with_a_job();
        const Refused refused = refusal_of_another_version();  // what such a lab node would say
        QCOMPARE(lab_->stop(), 0);
        {
            const Stranger stranger(the_labs_own(), lab_->port(),
                                    reply_with(refused.status, encode_message(refused.error)));
            worker_->start();
            QTRY_VERIFY2_WITH_TIMEOUT(has(worker_->log(), refused.error.message), worker_->log().c_str(),
                                      patience_ms);
            QVERIFY2(has(worker_->log(), "the worker asks again every hour"), worker_->log().c_str());
            const size_t asked = stranger.https().requests.size();
            QTest::qWait(2'500);  // longer than a failure that passes is waited out
            QCOMPARE(stranger.https().requests.size(), asked);
        }
        QVERIFY(worker_->running());
        worker_->kill();
        lab_->start();
        worker_->start();
        expect_done(id);
    }

    void a_lab_of_another_version_is_explained_when_joining_data() {
        QTest::addColumn<int>("protocol");
        QTest::addColumn<int>("contract");
        QTest::addColumn<QString>("said");
        QTest::addRow("an older protocol") << -1 << 0 << "at the lab node: update the lab node";
        QTest::addRow("a newer protocol") << 1 << 0 << "at the lab node: update the contributor";
        QTest::addRow("an older contract") << 0 << -1 << "at the lab node: update the lab node";
        QTest::addRow("a newer contract") << 0 << 1 << "at the lab node: update the contributor";
    }
    void a_lab_of_another_version_is_explained_when_joining() {
        QFETCH(QString, said);
        SimulatedContributor wire(lab_->client_settings());
        LabInfo info = wire.lab_info();
        info.versions = another_version();
        const std::string link = lab_->invite();
        QCOMPARE(lab_->stop(), 0);
        {
            const Stranger stranger(the_labs_own(), lab_->port(), reply_with(200, encode_message(info)));
            start_worker(link);
            QTRY_VERIFY2_WITH_TIMEOUT(has(worker_->log(), said.toStdString()), worker_->log().c_str(),
                                      patience_ms);
            QCOMPARE(stranger.https().requests.size(), size_t{1});  // the token was not sent
        }
        QCOMPARE(worker_->stop(), 0);
        lab_->start();
        start_worker(link);
        expect_done(submit());
    }

  private:
    Certificate certificate_of(bool publicly_valid) {
        if (!publicly_valid) return make_certificate();
        public_ = std::make_unique<PublicCertificate>();
        if (!public_->valid()) qFatal("the certificate that should be publicly valid is not");
        return public_->get();
    }
    Certificate the_labs_own() const {
        return certificate_in(lab_->directory() / "lab.crt", lab_->directory() / "lab.key");
    }

    void start_worker(const std::string& link) {
        worker_.reset();
        WorkerProcess::Settings settings{link, WorkerProcess::modest_options("one"), {}, {}};
        if (public_) settings.environment = public_->environment();
        worker_ = std::make_unique<WorkerProcess>(settings);
    }
    // A contributor that has joined and stopped, and a job that waits for it.
    uint64_t start_with_a_job() {
        start_worker(lab_->invite());
        lab_->wait_for_contributors(1);
        worker_->stop();
        return submit();
    }
    uint64_t submit() const {
        return lab_->submit_product(product_->a(), product_->b(), product_->output(), {{"verify", "product"}},
                                    "32x32");
    }

    static Versions another_version() {
        QFETCH(int, protocol);
        QFETCH(int, contract);
        Versions versions;
        versions.protocol += static_cast<uint64_t>(protocol);
        versions.contract += static_cast<uint64_t>(contract);
        return versions;
    }
    Refused refusal_of_another_version() const {
        Contributor contributor(*lab_, "another version");
        ExchangeRequest request = contributor.request_of({}, 1);
        request.versions = another_version();
        try {
            contributor.exchange(request);
        } catch (const Refused& refused) {
            return refused;
        }
        throw Error(ErrorKind::failed, "expected the lab to refuse another version, found it talking on");
    }

    void expect_done(uint64_t id) const {
        const Json status = lab_->wait_for_job(id, 120'000);
        QVERIFY2(status["state"] == "done", (worker_->log() + lab_->history(id)).c_str());
        QCOMPARE(product_->wrong_output(), std::string());
        const LabLedger ledger(lab_->directory());
        QCOMPARE(ledger.disagreements(), uint64_t{0});
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<ProductFiles> product_;
    std::unique_ptr<PublicCertificate> public_;
    std::unique_ptr<WorkerProcess> worker_;
};

}  // namespace goblin::test

int main(int count, char** arguments) {
    goblin::test::SmallDisk::prepare();  // for certificates that this test's system alone trusts
    QCoreApplication application(count, arguments);
    goblin::test::TestImpostors test;
    return QTest::qExec(&test, count, arguments);
}
#include "test_impostors.moc"
