// Asks the kernel for a network namespace and switches its loopback.
#include "tests/support/own_network.hpp"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace goblin::test {

namespace {

bool prepared_ = false;
bool without_ipv4 = false;

ifreq loopback() {
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    return request;
}

void ask(unsigned long what, ifreq& request) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool done = ioctl(socket, what, &request) == 0;
    const int reason = errno;
    close(socket);
    if (!done)
        throw std::runtime_error(std::string("cannot change the test's own loopback: ") +
                                 std::strerror(reason));
}

void set_up(bool up) {
    ifreq request = loopback();
    ask(SIOCGIFFLAGS, request);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    ask(SIOCSIFFLAGS, request);
}

void drop_ipv4_address() {
    ifreq request = loopback();
    reinterpret_cast<sockaddr_in&>(request.ifr_addr).sin_family = AF_INET;  // 0.0.0.0: none
    ask(SIOCSIFADDR, request);
}

}  // namespace

bool OwnNetwork::prepare() {
    const int namespaces = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    if (unshare(namespaces) != 0) return false;
    prepared_ = true;
    set_up(true);
    return true;
}

bool OwnNetwork::prepared() {
    return prepared_;
}

void OwnNetwork::pull_cable() {
    set_up(false);
}

void OwnNetwork::plug_in() {
    set_up(true);
    if (without_ipv4) drop_ipv4_address();  // the system gives a loopback its address back
}

void OwnNetwork::remove_ipv4() {
    drop_ipv4_address();
    without_ipv4 = true;
}

}  // namespace goblin::test
