// A handler may only write a byte; the event loop reads it.
#include "app/worker/signals.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <QSocketNotifier>
#include <atomic>
#include <csignal>

#include "core/error.hpp"

namespace goblin::worker {

namespace {

std::atomic<int> write_end{-1};

struct SignalRow {
    int signal;
    Wish wish;
};
constexpr SignalRow rows[] = {
    {SIGTERM, Wish::end},   {SIGINT, Wish::end},     {SIGHUP, Wish::end},
    {SIGUSR1, Wish::pause}, {SIGUSR2, Wish::resume},
};

void note_signal(int signal) {
    const int end = write_end;
    char byte = 0;
    for (const SignalRow& row : rows)
        if (row.signal == signal) byte = static_cast<char>(row.wish);
    if (end >= 0) [[maybe_unused]]
        const auto written = ::write(end, &byte, 1);
}

void handle(int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
}

}  // namespace

Signals::Signals(std::function<void(Wish)> wished, QObject* parent) : QObject(parent) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0)
        throw Error(ErrorKind::io,
                    "expected a pair of sockets from the system, found none; raise the limit on open files");
    write_end = ends_[1];
    auto* notifier = new QSocketNotifier(ends_[0], QSocketNotifier::Read, this);
    connect(notifier, &QSocketNotifier::activated, this, [this, wished] {
        char byte = 0;
        if (::read(ends_[0], &byte, 1) == 1) wished(static_cast<Wish>(byte));
    });
    for (const SignalRow& row : rows) handle(row.signal, note_signal);
    std::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
    for (const SignalRow& row : rows) handle(row.signal, SIG_DFL);
    write_end = -1;
    ::close(ends_[0]);
    ::close(ends_[1]);
}

}  // namespace goblin::worker
