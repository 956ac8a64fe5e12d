// What the tests of both command lines share: a lab whose files stand in one folder, its commands run there
// as a person would, and what their output must look like.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/lab_process.hpp"
#include "tests/support/product_files.hpp"

namespace goblin::test {

using Words = std::vector<std::string>;

enum Exit { done = 0, failed = 1, usage = 2, no_node = 3, detached = 4 };

Words operator+(Words words, const Words& more);
std::string told(const Finished& finished);
bool is_one_json_line(const std::string& output);

// A lab node with the operands A.npy (24×6) and B.npy (6×24) among its files.
class LabAtHand {
  public:
    LabAtHand();

    // Among the lab's files, as a person would stand there.
    Finished in_files(const Words& arguments, bool json = true) const;
    // The document that the command prints with --json; throws unless it exits as expected.
    lab::Json json_of(const Words& arguments, int exit = done) const;
    // Empty when the command is refused as wrong usage that says what was expected, `found`, and what to do.
    std::string wrong_usage_error(const Words& arguments, const std::string& found) const;

    LabProcess lab;
    ProductFiles product;
};

}  // namespace goblin::test
