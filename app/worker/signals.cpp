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

void note_signal(int) {
    const int end = write_end;
    const char byte = 1;
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

Signals::Signals(std::function<void()> asked_to_end, QObject* parent) : QObject(parent) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0)
        throw Error(ErrorKind::io,
                    "expected a pair of sockets from the system, found none; raise the limit on open files");
    write_end = ends_[1];
    auto* notifier = new QSocketNotifier(ends_[0], QSocketNotifier::Read, this);
    connect(notifier, &QSocketNotifier::activated, this, [this, asked_to_end] {
        char byte = 0;
        if (::read(ends_[0], &byte, 1) == 1) asked_to_end();
    });
    handle(SIGTERM, note_signal);
    handle(SIGINT, note_signal);
    handle(SIGHUP, note_signal);
    std::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) handle(signal, SIG_DFL);
    write_end = -1;
    ::close(ends_[0]);
    ::close(ends_[1]);
}

}  // namespace goblin::worker
