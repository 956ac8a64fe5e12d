// A full disk is a clear error at once, and nothing unfinished is left on it.
//
// The disk is a file system in memory of 1 MiB that only this process sees. Where the system allows no such
// thing, a limit on the size of files stands in for it.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>

#include "core/tensor/npy_writer.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;

namespace {

constexpr rlim_t disk_bytes = 1 << 20;

bool mount_small_disk(const char* folder) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    // root needs no user namespace, everybody else does
    if (user == 0 ? unshare(CLONE_NEWNS) != 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (user != 0) {
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
        std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    }
    // Private first: otherwise the mount would show outside.
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return mount("tmpfs", folder, "tmpfs", 0, "size=1m") == 0;
}

bool has_disk = false;
QString disk;

}  // namespace

class TestNpyDiskFull : public QObject {
    Q_OBJECT
    std::filesystem::path file(const QString& name) const { return (disk + "/" + name).toStdString(); }
    QStringList names() const { return QDir(disk).entryList(QDir::Files); }
    QString reason() const {
        return has_disk ? "bytes free on its disk; free some and try again" : "a limit on the size of files";
    }

  private slots:
    void initTestCase() { qInfo("%s", has_disk ? "on a disk of 1 MiB" : "under a limit of 1 MiB on files"); }

    void a_result_that_does_not_fit_is_refused_before_anything_is_written() {
        const TensorSpec spec{DType::u8, Shape{2 << 20}};
        VERIFY_REFUSED(NpyWriter::create(file("c.npy"), "1", spec), "expected room for 2097280 bytes in");
        VERIFY_REFUSED(NpyWriter::create(file("c.npy"), "1", spec), reason());
        QCOMPARE(kind_of_error_of([&] { NpyWriter::create(file("c.npy"), "1", spec); }), ErrorKind::io);
        QCOMPARE(names(), QStringList{});
    }

    void a_result_that_fits_has_its_room_even_when_the_disk_fills_up() {
        const TensorSpec spec{DType::u8, Shape{1, 700'000}};
        NpyWriter writer = NpyWriter::create(file("c.npy"), "1", spec);
        const File other = File::create(file("other"));
        const std::vector<std::byte> piece(10'000);
        const auto fill = [&] {
            for (uint64_t offset = 0; offset < 2 * disk_bytes; offset += piece.size())
                other.write_at(offset, piece);
        };
        VERIFY_REFUSED(fill(), "expected room for");
        VERIFY_REFUSED(fill(), reason());
        writer.write_block({0, 0, 1, 700'000}, std::vector<std::byte>(700'000, std::byte{3}));
        writer.finish();
        QCOMPARE(names(), (QStringList{"c.npy", "other"}));
    }
};

int main(int count, char** arguments) {
    const QTemporaryDir folder;
    disk = folder.path();
    has_disk = mount_small_disk(qPrintable(disk));
    if (!has_disk) {
        const rlimit limit{disk_bytes, disk_bytes};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
        std::signal(SIGXFSZ, SIG_IGN);
    }
    TestNpyDiskFull test;
    const int failures = QTest::qExec(&test, count, arguments);
    if (has_disk) umount(qPrintable(disk));
    return failures;
}

#include "test_npy_disk_full.moc"
