// Runs jobs to their end and looks at what came out.
#include "tests/end_to_end/honesty/lab_with_honest_ones.hpp"

#include <atomic>

#include "core/error.hpp"

namespace goblin::test {

namespace {

std::string fresh_name() {
    static std::atomic<int> count{0};
    return fmt::format("product-{}", ++count);
}

}  // namespace

LabWithHonestOnes::LabWithHonestOnes(LabProcess::Settings settings) : lab(std::move(settings)) {}

lab::Json LabWithHonestOnes::show(const Contributor& contributor) const {
    for (const lab::Json& node : lab.ask("node.list"))
        if (node["name"] == contributor.name()) return lab.ask("node.show", {{"id", node["id"]}});
    throw Error(ErrorKind::failed, "expected the lab to list {}, found others only", contributor.name());
}

std::string LabWithHonestOnes::disagreements(const Contributor& contributor) const {
    std::string text;
    const lab::Json shown = show(contributor);
    for (const lab::Json& line : shown["disagreements"]) text += line["text"].get<std::string>() + "\n";
    return text;
}

Job::Job(LabWithHonestOnes& lab, Settings settings)
    : Job(lab, random_matrix(settings.dtype, settings.rows, settings.depth, 1),
          random_matrix(settings.dtype, settings.depth, settings.cols, 2), settings) {}

Job::Job(LabWithHonestOnes& lab, const Tensor& a, const Tensor& b, Settings settings)
    : lab_(lab),
      settings_(std::move(settings)),
      files_(lab.lab.files(), fresh_name(), a, b),
      id_(lab.lab.submit_product(files_.a(), files_.b(), files_.output(),
                                 {{"verify", settings_.policy}, {"replicas", settings_.replicas}},
                                 settings_.tile)) {}

std::string Job::end_with(std::vector<Contributor*> others, int patience_ms) {
    lab::Json status;
    try {
        Crew crew;
        crew.add(lab_.alice);
        crew.add(lab_.bob);
        for (Contributor* other : others) crew.add(*other);
        status = lab_.lab.wait_for_job(id_, patience_ms);
        crew.rest();
    } catch (const Error& error) {
        return error.what();
    }
    return what_is_wrong(status);
}

std::string Job::what_is_wrong(const lab::Json& status) const {
    if (status["state"] != "done") return status.dump() + "\n" + history();
    if (const std::string wrong = files_.wrong_output(); !wrong.empty()) return wrong + "\n" + history();
    for (const Contributor* honest : {&lab_.alice, &lab_.bob}) {
        const lab::Json shown = lab_.show(*honest);
        if (shown["disagreed"] != 0 || shown["failed"] != 0)
            return "an honest contributor was blamed: " + shown.dump();
    }
    return {};
}

}  // namespace goblin::test
