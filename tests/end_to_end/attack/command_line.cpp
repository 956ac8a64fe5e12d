// Runs goblin-lab's commands beside its lab.
#include "command_line.hpp"

namespace goblin::test {

using lab::Json;

Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::string told(const Finished& finished) {
    return fmt::format("exit {}\n{}\n{}", finished.exit_code, finished.output, finished.errors);
}

bool is_one_json_line(const std::string& output) {
    return output.find('\n') == output.size() - 1 && !Json::parse(output, nullptr, false).is_discarded();
}

LabAtHand::LabAtHand()
    : product(lab.files(), "A", random_matrix(DType::f32, 24, 6, 1), random_matrix(DType::f32, 6, 24, 2)) {
    std::filesystem::copy_file(product.a(), lab.files() / "A.npy");
    std::filesystem::copy_file(product.b(), lab.files() / "B.npy");
}

Finished LabAtHand::in_files(const Words& arguments, bool json) const {
    Words all = {"-c",    "cd \"$0\" && exec \"$@\"", lab.files().string(), program("goblin-lab").string(),
                 "--dir", lab.directory().string()};
    if (json) all.push_back("--json");
    return run_program("/bin/sh", all + arguments);
}

Json LabAtHand::json_of(const Words& arguments, int exit) const {
    const Finished ran = in_files(arguments);
    if (ran.exit_code != exit || !is_one_json_line(ran.output))
        throw Error(ErrorKind::failed, "expected exit {} and one line of JSON, found {}", exit, told(ran));
    return Json::parse(ran.output);
}

std::string LabAtHand::wrong_usage_error(const Words& arguments, const std::string& found) const {
    const Finished ran = in_files(arguments);
    const auto says = [&](const std::string& text) { return ran.errors.find(text) != std::string::npos; };
    const bool says_what = says("goblin-lab: ") && says("expected") && says("found") && says(found);
    // Where help is, another command, or what a right value looks like.
    const bool says_next = says("--help") || says("`goblin-lab ") || says("for example") || says("use ") ||
                           says("choose ") || says("remove it");
    const bool is_json = is_one_json_line(ran.output) && Json::parse(ran.output).contains("error");
    if (ran.exit_code == usage && says_what && says_next && is_json) return {};
    return fmt::format("goblin-lab {}\n{}", fmt::join(arguments, " "), told(ran));
}

}  // namespace goblin::test
