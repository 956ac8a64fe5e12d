// A product's output over restarts of the lab node: taken up, finished, or missed.
#include <QTest>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "labcli/jobs/product/product_job.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::lab {

using nlohmann::json;

class TestProductJob : public QObject {
    Q_OBJECT

    std::unique_ptr<test::TemporaryFolder> folder_;
    std::unique_ptr<test::ProductFiles> files_;

    json specification(bool overwrite) const {
        return plan_product({{"a", files_->a().string()},
                             {"b", files_->b().string()},
                             {"output", files_->output().string()},
                             {"overwrite", overwrite},
                             {"tile", "8x8"}},
                            {});
    }
    void put_something_at_the_output() const { std::ofstream(files_->output()) << "an older result"; }

  private slots:
    void init() {
        folder_ = std::make_unique<test::TemporaryFolder>();
        files_ = std::make_unique<test::ProductFiles>(folder_->path(), "p",
                                                      test::random_matrix(DType::i32, 8, 4, 1),
                                                      test::random_matrix(DType::i32, 4, 8, 2));
    }

    void jobs_name_the_parts_of_one_file_alike_until_it_changes() {
        json stored = specification(false);
        json again = specification(false);
        const auto first = open_product(stored, true);
        const auto second = open_product(again, true);
        QVERIFY(first->slice_origin(0) == second->slice_origin(0));
        QVERIFY(first->slice_origin(0) != first->slice_origin(1));
        std::filesystem::last_write_time(
            files_->a(), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
        VERIFY_REFUSED(first->check_inputs(), "found it changed");
        json later = specification(false);
        QVERIFY(open_product(later, true)->slice_origin(0) != first->slice_origin(0));
    }

    void an_unfinished_output_is_taken_up() {
        json stored = specification(false);
        { const auto plan = open_product(stored, true); }
        QVERIFY(files_->partial());
        const Tensor right = files_->expected().clone();
        const auto plan = open_product(stored, false);
        plan->merge(0, std::span(&right, 1));
        plan->finish();
        QCOMPARE(files_->wrong_output(), std::string());
    }

    void an_output_that_can_not_have_its_name_stays_where_the_reason_says() {
        json stored = specification(false);
        const Tensor right = files_->expected().clone();
        const auto plan = open_product(stored, true);
        plan->merge(0, std::span(&right, 1));
        put_something_at_the_output();
        const std::string partial = files_->partial()->string();
        const std::string advice =
            fmt::format("complete in {0}: move the other file away, then type: mv {0} {1}", partial,
                        files_->output().string());
        VERIFY_REFUSED(plan->finish(), advice.c_str());
        plan->discard();  // as at the end of a job that failed
        QVERIFY(std::filesystem::exists(partial));
        std::filesystem::rename(partial, files_->output());
        QCOMPARE(files_->wrong_output(), std::string());
    }

    void an_output_whose_operand_changed_is_discarded() {
        json stored = specification(false);
        const auto plan = open_product(stored, true);
        std::filesystem::remove(files_->a());
        VERIFY_REFUSED(plan->finish(), "found it changed");
        plan->discard();
        QVERIFY(!files_->partial());
    }

    void a_finished_output_is_known_as_this_jobs_own() {
        put_something_at_the_output();
        json stored = specification(true);
        {
            const Tensor right = files_->expected().clone();
            const auto plan = open_product(stored, true);
            plan->merge(0, std::span(&right, 1));
            plan->finish();
        }
        open_product(stored, false)->finish();  // as after a kill before the end was recorded
        QCOMPARE(files_->wrong_output(), std::string());
    }

    void an_older_file_in_the_outputs_place_is_not_taken_for_the_result() {
        put_something_at_the_output();
        json stored = specification(true);
        { const auto plan = open_product(stored, true); }
        std::filesystem::remove(*files_->partial());
        VERIFY_REFUSED(open_product(stored, false), "expected the unfinished output of this job");
        std::filesystem::remove(files_->output());
        VERIFY_REFUSED(open_product(stored, false), "expected the unfinished output of this job");
    }
};

}  // namespace goblin::lab

QTEST_APPLESS_MAIN(goblin::lab::TestProductJob)
#include "test_product_job.moc"
