// What a lab node makes of the jobs in its database when it starts: those that can be read go on, whatever
// else is there.
#include <QTest>
#include <nlohmann/json.hpp>

#include "labcli/jobs/product/product_job.hpp"
#include "labcli/node/job_verbs.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/product_files.hpp"
#include "tests/unit/labcli/real_lab.hpp"

namespace goblin::lab {

using nlohmann::json;

class TestStoredJobs : public QObject {
    Q_OBJECT

    std::unique_ptr<RealLab> lab_;
    std::unique_ptr<test::TemporaryFolder> folder_;
    std::unique_ptr<test::ProductFiles> files_;

    // A product of four tasks.
    JobRecord a_product(JobId id) const {
        json specification = plan_product({{"a", files_->a().string()},
                                           {"b", files_->b().string()},
                                           {"output", (*folder_ / fmt::format("C{}.npy", id)).string()},
                                           {"tile", "4x4"}},
                                          {});
        open_product(specification, true);
        JobRecord record;
        record.id = id;
        record.kind = "product";
        record.specification = specification.dump();
        record.tasks = 4;
        return record;
    }
    // The same with its specification changed.
    JobRecord a_product(JobId id, const char* name, const json& value) const {
        JobRecord record = a_product(id);
        json specification = json::parse(record.specification);
        if (value.is_null())
            specification.erase(name);
        else
            specification[name] = value;
        record.specification = specification.dump();
        return record;
    }
    void keep(const std::vector<JobRecord>& jobs) const {
        Store store(lab_->database(), [](const std::string&) {});
        for (const JobRecord& job : jobs) store.job(job);
    }
    void execute(const char* sql) const { Database(lab_->database()).execute(sql); }
    QString text(JobId id, const char* what) const {
        return QString::fromStdString(job_status(lab_->node(), {{"id", id}})[what].get<std::string>());
    }

  private slots:
    void init() {
        lab_ = std::make_unique<RealLab>();
        folder_ = std::make_unique<test::TemporaryFolder>();
        files_ = std::make_unique<test::ProductFiles>(folder_->path(), "p",
                                                      test::random_matrix(DType::i32, 8, 4, 1),
                                                      test::random_matrix(DType::i32, 4, 8, 2));
    }

    void a_record_that_can_not_be_read_fails_and_says_why_while_the_others_go_on_data() {
        QTest::addColumn<QString>("damage");
        QTest::addColumn<QString>("found");
        QTest::newRow("kind") << "UPDATE job SET kind='neural' WHERE id=2"
                              << "'neural'";
        QTest::newRow("no JSON") << "UPDATE job SET spec='rubbish' WHERE id=2"
                                 << "parse error";
        QTest::newRow("no object") << "UPDATE job SET spec='[]' WHERE id=2"
                                   << "type_error";
        QTest::newRow("no rows") << "UPDATE job SET spec=json_remove(spec,'$.rows') WHERE id=2"
                                 << "'rows'";
        QTest::newRow("no tag") << "UPDATE job SET spec=json_remove(spec,'$.tag') WHERE id=2"
                                << "'tag'";
        QTest::newRow("type") << "UPDATE job SET spec=json_set(spec,'$.dtype','f16') WHERE id=2"
                              << "'f16'";
        QTest::newRow("no tile") << "UPDATE job SET spec=json_set(spec,'$.tile_rows',0) WHERE id=2"
                                 << "tile_rows from 1";
        QTest::newRow("negative") << "UPDATE job SET spec=json_set(spec,'$.depth',-4) WHERE id=2"
                                  << "found -4";
        QTest::newRow("other size") << "UPDATE job SET spec=json_set(spec,'$.depth',5) WHERE id=2"
                                    << "expected the operands";
        QTest::newRow("tasks") << "UPDATE job SET tasks=5 WHERE id=2"
                               << "5 tasks in a job of 4";
        QTest::newRow("accepted") << "INSERT INTO accepted VALUES(2,99)"
                                  << "task 99";
        QTest::newRow("assigned") << "INSERT INTO assignment(id,secret_id,key,job,task,computer,state,"
                                     "duration_ms,issued_at) VALUES(1,zeroblob(16),zeroblob(32),2,4,1,0,1,1)"
                                  << "task 4";
        QTest::newRow("short key") << "INSERT INTO assignment(id,secret_id,key,job,task,computer,state,"
                                      "duration_ms,issued_at) VALUES(1,zeroblob(16),zeroblob(3),2,1,1,0,1,1)"
                                   << "found 3";
        QTest::newRow("state") << "UPDATE job SET state=2 WHERE id=2"
                               << "state";
        QTest::newRow("policy") << "UPDATE job SET resolved=9 WHERE id=2"
                                << "policy";
        QTest::newRow("replicas") << "UPDATE job SET replicas=0 WHERE id=2"
                                  << "0 replicas";
    }

    void a_record_that_can_not_be_read_fails_and_says_why_while_the_others_go_on() {
        QFETCH(const QString, damage);
        QFETCH(const QString, found);
        keep({a_product(1), a_product(2), a_product(3)});
        execute(damage.toUtf8().constData());
        for (int start = 0; start < 2; ++start) {
            lab_->start();
            QCOMPARE(job_list(lab_->node(), {}).size(), size_t{3});
            QCOMPARE(text(1, "state"), QString("queued"));
            QCOMPARE(text(3, "state"), QString("queued"));
            QCOMPARE(text(2, "state"), QString("failed"));
            const auto reason = text(2, "reason");
            QVERIFY2(reason.startsWith("job 2: ") && reason.contains("expected ") && reason.contains(found),
                     qPrintable(reason));
            QVERIFY2(reason.contains("submit the job again") || reason.contains("restore a copy"),
                     qPrintable(reason));
            QVERIFY(lab_->logged(reason.toStdString()));
            lab_->stop();
        }
    }

    void a_job_that_is_over_is_shown_though_its_record_is_damaged() {
        JobRecord job = a_product(1);
        job.state = JobState::done;
        job.report = R"({"plan":"8×4×8","tasks":)";
        job.specification = R"({"output":7})";
        keep({job});
        lab_->start();
        QCOMPARE(text(1, "state"), QString("done"));
        QCOMPARE(text(1, "output"), QString(""));
    }

    void an_output_that_an_unfinished_job_writes_is_refused() {
        keep({a_product(7)});
        lab_->start();
        const auto submission = [this](const std::filesystem::path& output, bool overwrite) {
            return json{{"kind", "product"},
                        {"arguments",
                         {{"a", files_->a().string()},
                          {"b", files_->b().string()},
                          {"output", output.string()},
                          {"overwrite", overwrite}}}};
        };
        const std::filesystem::path link = *folder_ / "link";
        std::filesystem::create_directory_symlink(folder_->path(), link);
        for (const std::filesystem::path& output : {*folder_ / "C7.npy", link / "C7.npy"})
            for (const bool overwrite : {false, true}) {
                VERIFY_REFUSED(job_submit(lab_->node(), submission(output, overwrite)),
                               "expected an output that no unfinished job writes, found job 7 writing");
                VERIFY_REFUSED(job_plan(lab_->node(), submission(output, overwrite)), "found job 7 writing");
            }
        job_submit(lab_->node(), submission(*folder_ / "C8.npy", false));
        job_stop(lab_->node(), {{"id", 7}});
        job_submit(lab_->node(), submission(*folder_ / "C7.npy", false));
    }

    void the_unfinished_output_of_a_job_that_fails_so_is_removed() {
        keep({a_product(1, "dtype", "f16")});
        QVERIFY(folder_holds_partial());
        lab_->start();
        QVERIFY(!folder_holds_partial());
    }

    void a_record_from_before_outputs_were_noted_is_taken_up_where_nothing_is_in_doubt() {
        keep({a_product(1, "output_file", nullptr)});
        lab_->start();
        QCOMPARE(text(1, "state"), QString("queued"));
    }

    void a_record_from_before_outputs_were_noted_says_that_its_output_may_be_complete() {
        JobRecord job = a_product(1, "output_file", nullptr);
        const auto output = *folder_ / "C1.npy";
        for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
            if (entry.path().string().find(".partial-") != std::string::npos)
                std::filesystem::rename(entry.path(), output);
        keep({job});
        lab_->start();
        const auto reason = text(1, "reason");
        QVERIFY2(reason.contains("an earlier goblin-lab") && reason.contains("submit the job again"),
                 qPrintable(reason));
        QVERIFY(std::filesystem::exists(output));
    }

  private:
    bool folder_holds_partial() const {
        for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
            if (entry.path().string().find(".partial-") != std::string::npos) return true;
        return false;
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestStoredJobs)
#include "test_stored_jobs.moc"
