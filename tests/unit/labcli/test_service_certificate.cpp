// The lab's key and certificate: made once, kept secret, refused when damaged.
#include <sys/stat.h>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "core/error.hpp"
#include "labcli/service/certificate.hpp"

namespace goblin::lab {

namespace {

ErrorKind kind_thrown(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.kind();
    }
    throw std::runtime_error("nothing was thrown");
}

}  // namespace

class TestServiceCertificate : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> directory_;
    std::filesystem::path key_file() const { return directory_->filePath("lab.key").toStdString(); }
    std::filesystem::path certificate_file() const { return directory_->filePath("lab.crt").toStdString(); }
    LabCertificate make() const { return make_certificate(key_file(), certificate_file()); }
    LabCertificate load() const { return load_certificate(key_file(), certificate_file()); }
    LabCertificate renew() const { return renew_certificate(key_file(), certificate_file()); }
    static std::string text_of(const std::filesystem::path& file) {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    static std::filesystem::path fresh(std::filesystem::path file) { return file += ".new"; }
    static void write(const std::filesystem::path& file, const std::string& text) {
        std::ofstream(file) << text;
    }

  private slots:
    void init() { directory_ = std::make_unique<QTemporaryDir>(); }

    void what_is_made_is_loaded_again_with_the_same_key() {
        const LabCertificate made = make();
        const LabCertificate loaded = load();
        QVERIFY(made.key == loaded.key);
        QCOMPARE(made.key_pem, loaded.key_pem);
        QCOMPARE(made.certificate_pem, loaded.certificate_pem);
    }

    void each_lab_has_a_key_of_its_own() {
        const LabCertificate first = make();
        directory_ = std::make_unique<QTemporaryDir>();
        QVERIFY(first.key != make().key);
    }

    void the_key_is_its_owners_secret() {
        make();
        struct stat status {};
        QCOMPARE(stat(key_file().c_str(), &status), 0);
        QCOMPARE(status.st_mode & 0777, mode_t{0600});
        chmod(key_file().c_str(), 0640);
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::io);
    }

    void a_lab_that_has_a_key_keeps_it() {
        const LabCertificate made = make();
        QVERIFY(kind_thrown([&] { make(); }) == ErrorKind::io);
        QVERIFY(load().key == made.key);
        // Not even when only one of the two is left, and nothing half made stays behind.
        std::filesystem::remove(certificate_file());
        QVERIFY(kind_thrown([&] { make(); }) == ErrorKind::io);
        QVERIFY(!std::filesystem::exists(certificate_file()));
    }

    void missing_damaged_and_swapped_files_are_refused() {
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::io);
        const LabCertificate made = make();
        write(certificate_file(), "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::input);
        write(certificate_file(), made.certificate_pem);
        write(key_file(), made.key_pem.substr(0, made.key_pem.size() / 2));
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::input);
        const QTemporaryDir other;
        const auto others =
            make_certificate(other.filePath("k").toStdString(), other.filePath("c").toStdString());
        write(key_file(), others.key_pem);
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::input);
    }

    void a_key_is_changed_a_few_times_and_no_further() {
        LabCertificate now = make();
        for (uint64_t keys = 2; keys <= 8; ++keys) {
            const LabCertificate before = now;
            now = renew();
            QVERIFY(now.key != before.key);
            QVERIFY(now.certificate_pem.ends_with(before.certificate_pem));
            QCOMPARE(load().keys, keys);
            QVERIFY(load().key == now.key);
        }
        struct stat status {};
        QCOMPARE(stat(key_file().c_str(), &status), 0);
        QCOMPARE(status.st_mode & 0777, mode_t{0600});
        QVERIFY(kind_thrown([&] { renew(); }) == ErrorKind::failed);
        QVERIFY(load().key == now.key);
    }

    // Every state of the two files that a stop between two steps, or within one, can leave.
    void a_change_that_was_cut_off_is_undone_or_completed_data() {
        QTest::addColumn<int>("fresh_key");  // 0 none, 1 half written, 2 whole
        QTest::addColumn<int>("fresh_certificate");
        QTest::addColumn<bool>("moved");
        QTest::addRow("within the key") << 1 << 0 << false;
        QTest::addRow("after the key") << 2 << 0 << false;
        QTest::addRow("within the certificates") << 2 << 1 << false;
        QTest::addRow("after the certificates") << 2 << 2 << false;
        QTest::addRow("while being undone") << 0 << 2 << false;
        QTest::addRow("between the two moves") << 2 << 0 << true;
    }
    void a_change_that_was_cut_off_is_undone_or_completed() {
        QFETCH(int, fresh_key);
        QFETCH(int, fresh_certificate);
        QFETCH(bool, moved);
        const LabCertificate old = make();
        const LabCertificate made = renew();
        const auto part = [](const std::string& text, int how_much) {
            return how_much == 2 ? text : text.substr(0, text.size() / 2);
        };
        write(key_file(), old.key_pem);
        write(certificate_file(), moved ? made.certificate_pem : old.certificate_pem);
        if (fresh_key > 0) {
            write(fresh(key_file()), part(made.key_pem, fresh_key));
            chmod(fresh(key_file()).c_str(), 0600);
        }
        if (fresh_certificate > 0)
            write(fresh(certificate_file()), part(made.certificate_pem, fresh_certificate));
        QVERIFY(load().key == (moved ? made.key : old.key));
        QVERIFY(!std::filesystem::exists(fresh(key_file())));
        QVERIFY(!std::filesystem::exists(fresh(certificate_file())));
        QCOMPARE(text_of(key_file()), moved ? made.key_pem : old.key_pem);
        QVERIFY(renew().keys == (moved ? 3u : 2u));
    }

    void certificates_that_do_not_follow_each_other_are_refused() {
        const LabCertificate first = make();
        const LabCertificate made = renew();
        directory_ = std::make_unique<QTemporaryDir>();
        const LabCertificate other = make();
        write(certificate_file(), other.certificate_pem + first.certificate_pem);
        QVERIFY(kind_thrown([&] { load(); }) == ErrorKind::input);
        QVERIFY(made.keys == 2);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceCertificate)
#include "test_service_certificate.moc"
