// One directory is one volunteer, for one worker at a time.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/lab_record.hpp"
#include "app/worker/worker_directory.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;
using namespace goblin::worker;
namespace fs = std::filesystem;

class TestWorkerDirectory : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> folder_;
    fs::path path() const { return (folder_->path() + "/worker").toStdString(); }

  private slots:
    void init() { folder_ = std::make_unique<QTemporaryDir>(); }

    void identity_is_drawn_once() {
        VolunteerSeed seed{};
        ComputerId computer{};
        {
            const WorkerDirectory directory(path(), "machine");
            seed = directory.seed();
            computer = directory.computer();
            QVERIFY(seed != VolunteerSeed{});
        }
        const WorkerDirectory again(path(), "machine");
        QVERIFY(again.seed() == seed);
        QVERIFY(again.computer() == computer);
        QVERIFY(!again.came_from_elsewhere());
    }
    void a_second_worker_in_the_same_directory_is_refused() {
        const WorkerDirectory directory(path(), "machine");
        VERIFY_REFUSED(WorkerDirectory(path(), "machine"), "another goblin-worker running in it");
        QCOMPARE(kind_of_error_of([&] { WorkerDirectory(path(), "machine"); }), ErrorKind::denied);
    }
    void a_copy_on_another_machine_is_noticed_once() {
        { const WorkerDirectory directory(path(), "machine"); }
        { QVERIFY(WorkerDirectory(path(), "another machine").came_from_elsewhere()); }
        { QVERIFY(!WorkerDirectory(path(), "another machine").came_from_elsewhere()); }
    }
    void a_copy_beside_the_original_is_noticed() {
        { const WorkerDirectory directory(path(), "machine"); }
        const fs::path copy = path().string() + ".copy";
        fs::copy(path(), copy, fs::copy_options::recursive);
        QVERIFY(WorkerDirectory(copy, "machine").came_from_elsewhere());
        QVERIFY(!WorkerDirectory(path(), "machine").came_from_elsewhere());
    }
    void everything_is_for_the_owner_alone() {
        const WorkerDirectory directory(path(), "machine");
        const auto others = fs::perms::group_all | fs::perms::others_all;
        QVERIFY((fs::status(path()).permissions() & others) == fs::perms::none);
        for (const auto& entry : fs::directory_iterator(path()))
            QVERIFY2((entry.status().permissions() & others) == fs::perms::none, entry.path().c_str());
    }
    void a_damaged_seed_is_not_replaced_silently() {
        { const WorkerDirectory directory(path(), "machine"); }
        fs::resize_file(path() / "seed", 7);
        VERIFY_REFUSED(WorkerDirectory(path(), "machine"), "expected 32 bytes");
    }
    void a_directory_that_cannot_be_made_is_a_clear_error() {
        std::ofstream(path()) << "a file";
        VERIFY_REFUSED(WorkerDirectory(path(), "machine"), "choose another one with --dir");
    }

    void a_lab_is_remembered() {
        const Digest key = sha256({});
        LabRecord record;
        record.address = {"lab.example", 7411, key};
        record.name = "a \"lab\" <b>";
        record.credential = Credential{1, 2, 3};
        record.joined_by = key;
        QVERIFY(!load_lab_record(path(), key));
        save_lab_record(path(), record);
        const LabRecord loaded = load_lab_record(path(), key).value();
        QCOMPARE(loaded.address.text(), std::string("lab.example:7411"));
        QCOMPARE(loaded.name, record.name);
        QVERIFY(loaded.credential == record.credential);
        QVERIFY(loaded.joined_by == record.joined_by);
        record.credential.reset();
        save_lab_record(path(), record);
        QVERIFY(!load_lab_record(path(), key)->credential);
    }
    void a_damaged_record_asks_for_a_new_link() {
        fs::create_directories(path());
        std::ofstream(path() / "lab.json") << "{\"host\":";
        VERIFY_REFUSED(load_lab_record(path(), sha256({})), "join again with a new link");
    }
    void only_folders_named_by_a_key_are_labs() {
        const WorkerDirectory directory(path(), "machine");
        fs::create_directories(path() / "labs" / sha256({}).hex());
        fs::create_directories(path() / "labs" / "something else");
        QCOMPARE(directory.labs(), std::vector<Digest>{sha256({})});
    }
    void a_folder_of_labs_that_cannot_be_listed_is_an_error_of_the_disk() {
        const WorkerDirectory directory(path(), "machine");
        fs::remove(path() / "labs");
        QCOMPARE(kind_of_error_of([&] { (void)directory.labs(); }), ErrorKind::io);
        VERIFY_REFUSED(directory.labs(), "expected to list");
    }
};

QTEST_APPLESS_MAIN(TestWorkerDirectory)
#include "test_worker_directory.moc"
