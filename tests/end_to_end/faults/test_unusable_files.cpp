// Operands and outputs that can't be used: each is refused with what was expected, what was found and what to
// do next, nothing is left behind, and nothing of other jobs is lost.
#include <QTest>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/wait_until.hpp"
#include "tests/support/worker_process.hpp"

namespace goblin::test {

namespace {

using lab::Json;
namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

// A .npy file of version 1.0 as NumPy writes it.
std::string npy_text(const std::string& descr, const std::string& shape, size_t data_bytes) {
    std::string header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
    while ((10 + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    std::string text = "\x93NUMPY\x01";
    text += '\0';
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    return text + header + std::string(data_bytes, '\0');
}

struct Case {
    const char* name;
    // Makes A at the path (or leaves it); a good A and B are there already.
    std::function<void(const fs::path& a)> spoil;
    std::vector<std::string> said;
};

const Case cases[] = {
    {"a file that isn't there", [](const fs::path& a) { fs::remove(a); }, {"a.npy", "No such file"}},
    {"a folder",
     [](const fs::path& a) {
         fs::remove(a);
         fs::create_directory(a);
     },
     {"expected a file at", "found a folder; give the path of a file"}},
    {"a device",
     [](const fs::path& a) {
         fs::remove(a);
         fs::create_symlink("/dev/zero", a);
     },
     {"expected a file at", "found a pipe or a device; give the path of a file"}},
    {"an empty file",
     [](const fs::path& a) { write_text(a, ""); },
     {"expected a .npy file, found an empty one"}},
    {"a text",
     [](const fs::path& a) { write_text(a, "1,2,3\n4,5,6\n"); },
     {"expected a .npy file, which starts with \\x93NUMPY, found '1,2,3", "numpy.save"}},
    {"a file whose end is missing",
     [](const fs::path& a) { fs::resize_file(a, fs::file_size(a) - 5); },
     {"5 too few; copy or save it again"}},
    {"a file cut in its header",
     [](const fs::path& a) { fs::resize_file(a, 40); },
     {"expected a .npy header of", "copy it again"}},
    {"complex numbers",
     [](const fs::path& a) { write_text(a, npy_text("'<c8'", "(4, 4)", 128)); },
     {"expected elements of one of the types", "'<c8'"}},
    {"Python objects",
     [](const fs::path& a) { write_text(a, npy_text("'|O'", "(4, 4)", 128)); },
     {"expected elements of one of the types"}},
    {"half precision",
     [](const fs::path& a) { write_text(a, npy_text("'<f2'", "(4, 4)", 32)); },
     {"expected elements of one of the types", "'<f2'"}},
    {"a vector",
     [](const fs::path& a) { write_text(a, npy_text("'<f4'", "(4,)", 16)); },
     {"expected a matrix (two axes) for A", "reshape it"}},
    {"a stack of matrices",
     [](const fs::path& a) { write_text(a, npy_text("'<f4'", "(2, 4, 4)", 128)); },
     {"expected a matrix (two axes) for A", "reshape it"}},
    {"shapes that don't fit",
     [](const fs::path& a) { write_text(a, npy_text("'<f4'", "(4, 5)", 80)); },
     {"expected as many columns in A as rows in B, found", "f32[4, 5]", "transpose one of them"}},
    {"types that differ",
     [](const fs::path& a) { write_text(a, npy_text("'<f8'", "(4, 4)", 128)); },
     {"expected A and B of one type, found", "f64[4, 4]", "cast one of them"}},
};

}  // namespace

class TestUnusableFiles : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { lab_ = std::make_unique<LabProcess>(); }
    void init() {
        folder_ = files_ / QTest::currentTestFunction();
        fs::remove_all(folder_);
        fs::create_directory(folder_);
    }
    void cleanup() { fs::remove_all(folder_); }

    void an_operand_that_cant_be_used_is_refused_with_the_next_step_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(cases); ++i)
            QTest::addRow("%s", cases[i].name) << static_cast<int>(i);
    }
    void an_operand_that_cant_be_used_is_refused_with_the_next_step() {
        QFETCH(int, row);
        const Case& chosen = cases[row];
        for (const char* name : {"a.npy", "b.npy"})
            write_text(folder_ / name, npy_text("'<f4'", "(4, 4)", 64));
        chosen.spoil(folder_ / "a.npy");
        expect_refusal(folder_ / "a.npy", folder_ / "b.npy", folder_ / "c.npy", chosen.said);
    }

    void an_output_that_exists_is_kept_unless_its_owner_says_otherwise() {
        good_operands();
        write_text(folder_ / "c.npy", "precious");
        expect_refusal(folder_ / "a.npy", folder_ / "b.npy", folder_ / "c.npy",
                       {"expected no file of that name yet, found one", "--overwrite"});
        QCOMPARE(text_of_file(folder_ / "c.npy"), std::string("precious"));
        const Finished submitted =
            lab_->command({"product", (folder_ / "a.npy").string(), (folder_ / "b.npy").string(), "-o",
                           (folder_ / "c.npy").string(), "--overwrite", "--detach"});
        QCOMPARE(submitted.exit_code, 4);
        QCOMPARE(text_of_file(folder_ / "c.npy"), std::string("precious"));  // until the product is complete
        lab_->ask("job.stop", {{"id", Json::parse(submitted.output)["id"]}});
        QCOMPARE(text_of_file(folder_ / "c.npy"), std::string("precious"));
        QVERIFY(wait_until([&] { return !leftovers(); }));
    }

    void an_output_that_is_an_operand_is_refused() {
        good_operands();
        for (const char* name : {"a.npy", "b.npy"})
            expect_refusal(folder_ / "a.npy", folder_ / "b.npy", folder_ / name,
                           {"expected an output beside the operands"});
    }

    void an_output_in_a_folder_that_isnt_there_is_refused() {
        good_operands();
        expect_refusal(folder_ / "a.npy", folder_ / "b.npy", folder_ / "nowhere" / "c.npy",
                       {"expected the folder", "nowhere for the output, found none"});
    }

    void an_output_that_is_a_folder_is_refused_before_anything_is_computed() {
        good_operands();
        fs::create_directory(folder_ / "c");
        for (const char* more : {"--overwrite", "--dry-run"})
            for (const fs::path& output : {folder_ / "c", folder_ / "c" / "", folder_ / "not there" / ""})
                expect_refusal(folder_ / "a.npy", folder_ / "b.npy", output,
                               {"expected the name of a file for the output, found the folder", "C.npy"},
                               {more});
    }

    void a_dry_run_refuses_what_submitting_would() {
        good_operands();
        expect_refusal(folder_ / "a.npy", folder_ / "b.npy", folder_ / "nowhere" / "c.npy",
                       {"expected the folder"}, {"--dry-run"});
    }

    void an_output_in_a_folder_that_cant_be_written_is_refused() {
        good_operands();
        const SmallDisk disk(1 << 20);
        if (!disk) QSKIP("this system allows no file system of a test's own");
        disk.make_read_only();
        expect_refusal(folder_ / "a.npy", folder_ / "b.npy", disk.path() / "c.npy",
                       {"Read-only file system"});
    }

    void an_input_that_changed_before_its_tasks_were_handed_out_fails_the_job_data() { ways_to_change(); }
    void an_input_that_changed_before_its_tasks_were_handed_out_fails_the_job() {
        lab_ = std::make_unique<LabProcess>();  // one that has never seen a contributor
        const ProductFiles product = larger_product();
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "64x64");
        QVERIFY(wait_until([&] { return reason_of(id).find("none is connected") != std::string::npos; }));
        change(product.a());
        WorkerProcess worker({lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        expect_failed_by_the_change(id, product);
        QCOMPARE(worker.stop(), 0);
    }

    void an_input_that_changed_while_the_job_ran_fails_the_job_data() { ways_to_change(); }
    void an_input_that_changed_while_the_job_ran_fails_the_job() {
        const ProductFiles product = larger_product();
        WorkerProcess worker({lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "recompute"}}, "16x16");
        QVERIFY(wait_until([&] { return lab_->job(id)["accepted"].get<int>() > 0; }));
        change(product.a());
        expect_failed_by_the_change(id, product);
        QCOMPARE(worker.stop(), 0);
    }

    void an_input_that_changed_while_the_lab_node_was_down_fails_the_job_data() { ways_to_change(); }
    void an_input_that_changed_while_the_lab_node_was_down_fails_the_job() {
        const ProductFiles product = larger_product();
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "64x64");
        QCOMPARE(lab_->stop(), 0);
        change(product.a());
        lab_->start();
        expect_failed_by_the_change(id, product);
    }

    void a_changed_input_can_be_submitted_again() {
        const ProductFiles product = larger_product();
        WorkerProcess worker({lab_->invite(), WorkerProcess::modest_options("one"), {}, {}});
        const uint64_t id = lab_->submit_product(product.a(), product.b(), product.output(),
                                                 {{"verify", "product"}}, "64x64");
        const Json status = lab_->wait_for_job(id);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(product.wrong_output(), std::string());
        QCOMPARE(worker.stop(), 0);
    }

  private:
    void good_operands() {
        for (const char* name : {"a.npy", "b.npy"})
            write_text(folder_ / name, npy_text("'<f4'", "(4, 4)", 64));
    }

    // Panels of 64 rows travel as blobs.
    ProductFiles larger_product() {
        return ProductFiles(folder_, "p", random_matrix(DType::i32, 512, 320, 1),
                            random_matrix(DType::i32, 320, 512, 2));
    }

    void ways_to_change() {
        QTest::addColumn<QString>("way");
        for (const char* way : {"written to", "replaced", "removed"}) QTest::addRow("%s", way) << way;
    }

    void change(const fs::path& file) {
        QFETCH(QString, way);
        if (way == "written to") {
            std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
            stream.seekp(-1, std::ios::end);
            stream.put('\x55');
        } else if (way == "replaced") {
            const fs::path other = file.string() + ".new";
            fs::copy_file(file, other);
            fs::rename(other, file);
        } else {
            fs::remove(file);
        }
    }

    void expect_failed_by_the_change(uint64_t id, const ProductFiles& product) {
        const Json status = lab_->wait_for_job(id);
        QVERIFY2(status["state"] == "failed", status.dump().c_str());
        const std::string reason = status["reason"].get<std::string>();
        QVERIFY2(reason.find(product.a().string()) != std::string::npos, reason.c_str());
        QFETCH(QString, way);
        const bool removed = way == "removed" && reason.find("No such file") != std::string::npos;
        const bool changed = reason.find("found it changed; submit the job again") != std::string::npos;
        QVERIFY2(removed || changed, reason.c_str());
        QVERIFY(!fs::exists(product.output()));
        QVERIFY(wait_until([&] { return !product.partial(); }));
    }

    std::string reason_of(uint64_t id) { return lab_->job(id)["reason"].get<std::string>(); }

    bool leftovers() {
        for (const auto& entry : fs::directory_iterator(folder_))
            if (entry.path().string().find(".partial-") != std::string::npos) return true;
        return false;
    }

    void expect_refusal(const fs::path& a, const fs::path& b, const fs::path& output,
                        const std::vector<std::string>& said, const std::vector<std::string>& more = {}) {
        const size_t jobs = lab_->ask("job.list").size();
        std::vector<std::string> command{"product", a.string(), b.string(), "-o", output.string()};
        command.insert(command.end(), more.begin(), more.end());
        const Finished product = lab_->command(command);
        QVERIFY2(product.exit_code == 2, product.errors.c_str());
        for (const std::string& text : said)
            QVERIFY2(product.errors.find(text) != std::string::npos,
                     qPrintable(QString::fromStdString("expected '" + text + "', found: " + product.errors)));
        QCOMPARE(Json::parse(product.output)["error"].get<std::string>() + "\n",
                 product.errors.substr(std::string("goblin-lab: ").size()));
        QCOMPARE(lab_->ask("job.list").size(), jobs);
        QVERIFY(!leftovers());
    }

    const TemporaryFolder files_;
    std::unique_ptr<LabProcess> lab_;
    fs::path folder_;
};

}  // namespace goblin::test

int main(int count, char** arguments) {
    goblin::test::SmallDisk::prepare();
    goblin::test::TestUnusableFiles test;
    return QTest::qExec(&test, count, arguments);
}
#include "test_unusable_files.moc"
