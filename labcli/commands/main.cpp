// goblin-lab: the researcher's program. Reads the command line, runs one command, says what went wrong.
#include <algorithm>
#include <csignal>
#include <exception>

#include "core/work/plain_text.hpp"
#include "labcli/commands/commands.hpp"
#include "labcli/commands/usage.hpp"

namespace {

using namespace goblin;
using namespace goblin::lab;

constexpr const char* about =
    "GPU Goblin's lab: splits computations into tasks, has contributors compute them, verifies every "
    "result.\n\n"
    "First steps:\n"
    "  goblin-lab init                              makes a lab in ./goblin-lab\n"
    "  goblin-lab serve                             runs its lab node\n"
    "  goblin-lab invite                            prints a link for a contributor: goblin-worker --join "
    "LINK\n"
    "  goblin-lab product A.npy B.npy -o C.npy      computes A·B on the contributors\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or files that can't be used, 3 no lab node reached,\n"
    "4 the job goes on (--detach, --timeout, Ctrl-C).\n";

constexpr void (*commands[])(CLI::App&, Session&) = {add_init,    add_serve, add_renew_key, add_invite,
                                                     add_product, add_job,   add_node};

int fail(const Session& session, const Error& error) {
    if (session.json) fmt::print("{}\n", json_line({{"error", error.what()}}));
    fmt::print(stderr, "goblin-lab: {}\n", plain_lines(error.what()));
    return exit_code_of(error.kind());
}

int run(int argc, char** argv) {
    CLI::App app(about, "goblin-lab");
    Session session;
    app.add_option("--dir", session.directory,
                   "the lab's directory (else GOBLIN_LAB_DIR, else ./goblin-lab)");
    app.add_flag("--json", session.json, "print results as JSON");
    app.add_flag("--quiet,-q", session.quiet, "print results only");
    app.set_version_flag("--version", GOBLIN_VERSION);
    app.require_subcommand(1);
    for (const auto add : commands) add(app, session);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // help or version
        session.json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
        return fail(session, usage_error(app, error));
    } catch (const Error& error) {
        return fail(session, error);
    } catch (const std::exception& error) {
        return fail(session, Error(ErrorKind::failed, error.what()));
    }
    return session.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "goblin-lab: {}\n", plain_lines(error.what()));
        return exit_failed;
    }
}
