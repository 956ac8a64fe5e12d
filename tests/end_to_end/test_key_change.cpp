// A lab changes its key: contributors follow without joining again, links made before still join, and who has
// the old key is told nothing by those that followed.
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// What may not change in a worker's directory, by its path. Its one lab's work does.
std::map<std::string, std::string> lasting_files(const fs::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        const std::string name = fs::relative(entry.path(), directory).string();
        const bool work = has(name, "journal") || has(name, "/blobs") || has(name, "/outputs");
        if (entry.is_regular_file() && !work) files[name] = text_of_file(entry.path());
    }
    return files;
}

}  // namespace

class TestKeyChange : public QObject {
    Q_OBJECT

  private slots:
    void contributors_follow_a_new_key_and_leave_the_old_one() {
        LabProcess lab;
        const ProductFiles product(lab.files(), "p", random_matrix(DType::i32, 96, 64, 1),
                                   random_matrix(DType::i32, 64, 96, 2));
        const std::string link = lab.invite();
        const std::string spare_link = lab.invite();
        WorkerProcess worker({link, WorkerProcess::modest_options("one"), {}, {}});
        lab.wait_for_contributors(1);
        const auto before = lasting_files(worker.directory());
        const Finished refused = lab.command({"renew-key"});
        QCOMPARE(refused.exit_code, 2);
        QVERIFY2(has(refused.errors, "found one; stop it first"), refused.errors.c_str());

        QCOMPARE(lab.stop(), 0);
        const fs::path thief = lab.files() / "copy-of-the-lab";
        fs::copy(lab.directory(), thief, fs::copy_options::recursive);
        const Digest old_key = lab.key();
        const Finished renewed = lab.command({"renew-key"});
        QCOMPARE(renewed.exit_code, 0);
        QCOMPARE(Json::parse(renewed.output)["key_before"].get<std::string>(), old_key.hex());
        lab.start();
        QCOMPARE(Json::parse(renewed.output)["key"].get<std::string>(), lab.key().hex());

        const uint64_t id =
            lab.submit_product(product.a(), product.b(), product.output(), {{"verify", "product"}}, "32x32");
        QVERIFY2(lab.wait_for_job(id)["state"] == "done", worker.log().c_str());
        QVERIFY2(has(worker.log(), "has a new key"), worker.log().c_str());
        auto after = lasting_files(worker.directory());
        QCOMPARE(after.erase("labs/" + old_key.hex() + "/keys"), size_t{1});
        QVERIFY(after == before);

        WorkerProcess second({spare_link, WorkerProcess::modest_options("two"), {}, {}});
        lab.wait_for_contributors(2);
        QCOMPARE(second.stop(), 0);

        // Who has the old key serves at the lab's address.
        QCOMPARE(lab.stop(), 0);
        const std::string address = "127.0.0.1:" + std::to_string(lab.port());
        ChildProcess posing({program("goblin-lab"),
                             {"--dir", thief.string(), "serve", "--listen", address},
                             {},
                             lab.files() / "posing.out",
                             lab.files() / "posing.err"});
        QTRY_VERIFY2_WITH_TIMEOUT(has(worker.log(), "or one that is signed by it, found " +
                                                        old_key.hex().substr(0, 16) + "; nothing was sent"),
                                  worker.log().c_str(), 60'000);
        posing.kill();
        lab.start();
        lab.wait_for_contributors(1);
        QCOMPARE(worker.stop(), 0);
    }
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestKeyChange)
#include "test_key_change.moc"
