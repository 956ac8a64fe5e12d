// A lab with two honest contributors at hand, and jobs that they can always bring to the right end.
#pragma once

#include <QTest>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/contributor.hpp"
#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"
#include "tests/support/verify.hpp"

namespace goblin::test {

class LabWithHonestOnes {
  public:
    explicit LabWithHonestOnes(LabProcess::Settings settings = {});

    LabProcess lab;
    Contributor alice{lab, "alice"};
    Contributor bob{lab, "bob"};

    // The lab's record of a contributor, as `node show` prints it.
    lab::Json show(const Contributor& contributor) const;
    // What `node show` says about disagreements and failures, one a line.
    std::string disagreements(const Contributor& contributor) const;
};

// One product, from its submission to its end.
class Job {
  public:
    struct Settings {
        std::string policy = "redundant";
        DType dtype = DType::f32;
        int64_t rows = 24, depth = 10, cols = 24;
        std::string tile = "8x8";
        uint64_t replicas = 2;
    };
    Job(LabWithHonestOnes& lab, Settings settings);
    Job(LabWithHonestOnes& lab, const Tensor& a, const Tensor& b, Settings settings);

    uint64_t id() const { return id_; }
    const ProductFiles& files() const { return files_; }
    std::string history() const { return lab_.lab.history(id_); }

    // The honest ones, and `others` at the same time, work until the job is over. Empty when it is done with
    // the right bits and nobody honest was convicted or reported failing; else what is wrong.
    std::string end_with(std::vector<Contributor*> others, int patience_ms = 60'000);
    std::string end_well() { return end_with({}); }
    // The same of a job that a test has brought to its end in another way.
    std::string what_is_wrong(const lab::Json& status) const;

  private:
    LabWithHonestOnes& lab_;
    Settings settings_;
    ProductFiles files_;
    uint64_t id_;
};

}  // namespace goblin::test

// The call must be refused over HTTP with this status, and a message that contains the text.
#define VERIFY_HTTP_REFUSED(call, expected_status, text)                                                \
    try {                                                                                               \
        (void)(call);                                                                                   \
        QFAIL("expected a refusal, found none");                                                        \
    } catch (const goblin::test::Refused& refused) {                                                    \
        QCOMPARE(refused.status, expected_status);                                                      \
        QVERIFY2(refused.error.message.find(text) != std::string::npos, refused.error.message.c_str()); \
    }

// The receipt must refuse, for a reason that contains the text.
#define VERIFY_RECEIPT_REFUSED(receipt_expression, text)                                          \
    do {                                                                                          \
        const goblin::Receipt receipt = (receipt_expression);                                     \
        QCOMPARE(static_cast<int>(receipt.kind), static_cast<int>(goblin::ReceiptKind::refused)); \
        QVERIFY2(receipt.reason.find(text) != std::string::npos, receipt.reason.c_str());         \
    } while (false)
