// What limits a worker from outside, its cpuset and its control group's quota and memory, is obeyed by it and
// planned for by the lab. The cpuset is the system's own; the groups' files are made for the test and laid
// over those that the worker looks at, since a test may not change the groups of the system it runs on.
#include <sched.h>

#include <QTest>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

constexpr uint64_t mib = 1 << 20;

void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
}

// A control group that allows one and a half processors and so much memory.
class ControlGroup {
  public:
    ControlGroup(int version, uint64_t memory_bytes) {
        const std::string memory = std::to_string(memory_bytes);
        if (version == 2) {
            write(folder_ / "cgroup", "0::/slice/unit");
            write(folder_ / "mountinfo", "30 23 0:26 / " + at("v2") + " rw - cgroup2 cgroup2 rw");
            write(at("v2/slice/cpu.max"), "150000 100000");
            write(at("v2/slice/unit/memory.max"), memory);
        } else {
            write(folder_ / "cgroup", "4:cpu,cpuacct:/unit\n3:memory:/unit");
            write(folder_ / "mountinfo", "31 23 0:27 / " + at("cpu") +
                                             " rw - cgroup cgroup rw,cpu,cpuacct\n" + "32 23 0:28 / " +
                                             at("memory") + " rw - cgroup cgroup rw,memory");
            write(at("cpu/unit/cpu.cfs_quota_us"), "150000");
            write(at("cpu/unit/cpu.cfs_period_us"), "100000");
            write(at("memory/unit/memory.limit_in_bytes"), memory);
        }
    }

    // Puts the program that is named after it into the group.
    std::vector<std::string> launcher() const {
        return {"/bin/sh",
                "-c",
                "mount --bind \"$1\" /proc/$$/cgroup && mount --bind \"$2\" /proc/$$/mountinfo && shift 2 && "
                "exec \"$@\"",
                "sh",
                at("cgroup"),
                at("mountinfo")};
    }

  private:
    std::string at(const std::string& name) const { return (folder_ / name).string(); }

    TemporaryFolder folder_;
};

std::vector<int> allowed_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> processors;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    return processors;
}

std::vector<std::string> launcher_on_processor(int processor) {
    return {"/usr/bin/taskset", "-c", std::to_string(processor)};
}

Json device_under(std::vector<std::string> launcher) {
    launcher.insert(launcher.end(), {program("goblin-worker").string(), "devices", "--json"});
    const std::string first = launcher.front();
    launcher.erase(launcher.begin());
    const Finished printed = run_program(first, launcher);
    if (printed.exit_code != 0) throw Error(ErrorKind::failed, "goblin-worker devices: {}", printed.errors);
    return Json::parse(printed.output)["devices"][0];
}

std::string line_of(const fs::path& file, const std::string& start) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
        if (line.starts_with(start)) return line.substr(start.size());
    throw Error(ErrorKind::io, "expected {} in {}, found none", start, file.string());
}

}  // namespace

class TestMachineLimitsObeyed : public QObject {
    Q_OBJECT

  private slots:
    void all_processors_are_used_where_nothing_limits_them() {
        QCOMPARE(device_under({"/usr/bin/env"})["threads"].get<size_t>(), allowed_processors().size());
    }

    void the_cpuset_is_obeyed() {
        const int processor = allowed_processors().back();
        QCOMPARE(device_under(launcher_on_processor(processor))["threads"].get<int>(), 1);

        LabProcess lab;
        WorkerProcess worker(
            {lab.invite(), {"--memory", "256MiB"}, {}, {}, launcher_on_processor(processor)});
        const ProductFiles product(lab.files(), "p", random_matrix(DType::i32, 256, 64, 1),
                                   random_matrix(DType::i32, 64, 256, 2));
        const uint64_t id =
            lab.submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}}, "64x64");
        QVERIFY(lab.wait_for_job(id)["state"] == "done");
        QCOMPARE(product.wrong_output(), std::string());
        QVERIFY2(worker.log().find(": 1 threads,") != std::string::npos, worker.log().c_str());
        for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", worker.pid())))
            QCOMPARE(line_of(thread.path() / "status", "Cpus_allowed_list:\t"), std::to_string(processor));
    }

    void the_groups_quota_and_memory_are_obeyed_data() {
        QTest::addColumn<int>("version");
        QTest::addRow("control groups, version 1") << 1;
        QTest::addRow("control groups, version 2") << 2;
    }
    void the_groups_quota_and_memory_are_obeyed() {
        if (!SmallDisk(mib)) QSKIP("this system lets a test lay no file over another; run it as root");
        QFETCH(int, version);
        const ControlGroup group(version, 160 * mib);
        const Json device = device_under(group.launcher());
        QCOMPARE(device["threads"].get<int>(), 1);
        QCOMPARE(device["memory_bytes"].get<uint64_t>(), 80 * mib);
    }

    // Two operands that together would fill the memory for tasks.
    void the_groups_memory_is_planned_for_and_kept() {
        if (!SmallDisk(mib)) QSKIP("this system lets a test lay no file over another; run it as root");
        const ControlGroup group(2, 160 * mib);
        LabProcess lab;
        const ProductFiles product(lab.files(), "p", random_matrix(DType::f32, 40, 262'144, 1),
                                   random_matrix(DType::f32, 262'144, 40, 2));
        const auto plan = [&] {
            lab.wait_for_contributors(1);
            return lab.ask("job.plan", {{"kind", "product"},
                                        {"verify", "product"},
                                        {"arguments",
                                         {{"a", product.a().string()},
                                          {"b", product.b().string()},
                                          {"output", product.output().string()},
                                          {"tile", ""}}}});
        };
        WorkerProcess worker({lab.invite(), {"--disk", "256MiB"}, {}, {}, group.launcher()});
        const Json limited = plan();
        QVERIFY2(limited["tasks"].get<int>() > 1, limited.dump().c_str());
        QVERIFY2(limited["memory_per_task_bytes"].get<uint64_t>() <= 80 * mib, limited.dump().c_str());

        const uint64_t id =
            lab.submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}});
        const Json status = lab.wait_for_job(id);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        const uint64_t peak_kib =
            std::stoull(line_of(fmt::format("/proc/{}/status", worker.pid()), "VmHWM:"));
        QVERIFY2(peak_kib <= 160 * 1024, qPrintable(QString("%1 KiB at the peak").arg(peak_kib)));
        QVERIFY2(lab.history(id).find("refused") == std::string::npos, lab.history(id).c_str());
        qInfo("%llu KiB at the peak", static_cast<unsigned long long>(peak_kib));
        QCOMPARE(worker.stop(), 0);
    }
};

}  // namespace goblin::test

int main(int count, char** arguments) {
    goblin::test::SmallDisk::prepare();
    goblin::test::TestMachineLimitsObeyed test;
    return QTest::qExec(&test, count, arguments);
}
#include "test_machine_limits_obeyed.moc"
