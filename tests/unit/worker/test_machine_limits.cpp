// Processors and memory that a process may use, by made-up /proc and /sys of both kinds of control groups.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/machine_limits.hpp"

using namespace goblin::worker;
namespace fs = std::filesystem;

class TestMachineLimits : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> folder_;
    fs::path root() const { return folder_->path().toStdString(); }
    void write(const std::string& path, const std::string& text) {
        fs::create_directories((root() / path).parent_path());
        std::ofstream(root() / path) << text << "\n";
    }
    void write_version2(const std::string& group) {
        write("proc/self/cgroup", "0::" + group);
        write("proc/self/mountinfo",
              "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate");
    }
    void write_version1(const std::string& group, const std::string& mounted_root = "/") {
        write("proc/self/cgroup", "4:cpu,cpuacct:" + group + "\n3:memory:" + group + "\n0::/elsewhere");
        write("proc/self/mountinfo",
              "31 23 0:27 " + mounted_root +
                  " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n32 23 0:28 " +
                  mounted_root + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
    }

  private slots:
    void init() {
        folder_ = std::make_unique<QTemporaryDir>();
        write("proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB");
    }

    void without_groups_the_machine_and_the_affinity_count() {
        const MachineLimits limits = read_machine_limits(root(), 6);
        QCOMPARE(limits.processors, 6u);
        QCOMPARE(limits.memory_bytes, uint64_t{16384} * 1024);
    }
    void version_2_limits_count_at_every_level() {
        write_version2("/slice/unit");
        write("sys/fs/cgroup/slice/cpu.max", "250000 100000");
        write("sys/fs/cgroup/slice/memory.max", "max");
        write("sys/fs/cgroup/slice/unit/cpu.max", "max 100000");
        write("sys/fs/cgroup/slice/unit/memory.max", "1048576");
        const MachineLimits limits = read_machine_limits(root(), 6);
        QCOMPARE(limits.processors, 2u);
        QCOMPARE(limits.memory_bytes, uint64_t{1} << 20);
        QVERIFY(limits.memory_by.find("control group") != std::string::npos);
    }
    void version_1_limits_count() {
        write_version1("/docker/abc");
        write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000");
        write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "50000");
        write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "8388608");
        write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712");
        const MachineLimits limits = read_machine_limits(root(), 6);
        QCOMPARE(limits.processors, 3u);
        QCOMPARE(limits.memory_bytes, uint64_t{8} << 20);
    }
    void inside_a_container_the_mounts_root_is_taken_off() {
        write_version1("/docker/abc", "/docker/abc");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4194304");
        write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
        write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
        const MachineLimits limits = read_machine_limits(root(), 6);
        QCOMPARE(limits.processors, 6u);
        QCOMPARE(limits.memory_bytes, uint64_t{4} << 20);
    }
    void less_than_one_processor_is_one() {
        write_version2("/");
        write("sys/fs/cgroup/cpu.max", "10000 100000");
        QCOMPARE(read_machine_limits(root(), 6).processors, 1u);
    }
    void nonsense_in_the_files_limits_nothing() {
        write_version2("/../../etc");
        write("sys/fs/cgroup/cpu.max", "soon\n");
        write("sys/fs/cgroup/memory.max", "-5");
        const MachineLimits limits = read_machine_limits(root(), 4);
        QCOMPARE(limits.processors, 4u);
        QCOMPARE(limits.memory_bytes, uint64_t{16} << 20);
    }
    void this_machine_has_processors_and_memory() {
        const MachineLimits limits = this_machine_limits();
        QVERIFY(limits.processors >= 1);
        QVERIFY(limits.memory_bytes > 0);
    }
};

QTEST_APPLESS_MAIN(TestMachineLimits)
#include "test_machine_limits.moc"
