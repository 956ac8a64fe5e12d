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
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceCertificate)
#include "test_service_certificate.moc"
