// Carries bytes between pairs of sockets, one thread for all of them.
#include "tests/support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <stdexcept>
#include <utility>
#include <vector>

namespace goblin::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int look_ms = 5;  // between looks at what was asked of the proxy
constexpr size_t buffer_bytes = 64 << 10;

// An address that sockets take, of either family.
struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;

    Address(const std::string& text, uint16_t port) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
            v4.sin_family = AF_INET;
            v4.sin_port = htons(port);
            length = sizeof v4;
        } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = htons(port);
            length = sizeof v6;
        } else {
            throw std::runtime_error("expected an address, found '" + text + "'");
        }
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
};

class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~Socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const { return descriptor_; }
    // Closing it then tells the peer by a reset.
    void reset_on_close() const {
        const linger at_once{1, 0};
        setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }

  private:
    int descriptor_ = -1;
};

[[noreturn]] void give_up(const char* what) {
    throw std::runtime_error(std::string("proxy: could not ") + what + ": " + std::strerror(errno));
}

void set(int descriptor, int level, int name) {
    const int on = 1;
    setsockopt(descriptor, level, name, &on, sizeof on);
}

// Bytes read from one side and not yet written to the other.
struct Direction {
    std::array<char, buffer_bytes> buffer{};
    size_t begin = 0;
    size_t end = 0;
    uint64_t carried_bytes = 0;
    bool source_ended = false;
    bool end_told = false;

    bool empty() const { return begin == end; }
};

struct Pair {
    Socket client;
    Socket server;
    bool connected = false;
    Direction up;
    Direction down;
    bool loses_reply = false;
    bool broken = false;
};

}  // namespace

class TcpProxy::Loop {
  public:
    Loop(TcpProxy& proxy, const Place& here) : proxy_(proxy) {
        const Address address(here.address, here.port);
        listener_ = Socket(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        set(listener_.get(), SOL_SOCKET, SO_REUSEADDR);
        if (bind(listener_.get(), address.get(), address.length) != 0) give_up("bind");
        if (listen(listener_.get(), 128) != 0) give_up("listen");
        sockaddr_storage bound{};
        socklen_t length = sizeof bound;
        if (getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
            give_up("ask for the port");
        port_ = ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(bound).sin_port
                                                 : reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
    }

    uint16_t port() const { return port_; }

    void run() {
        while (!proxy_.ending_) {
            refill();
            wait();
            if (proxy_.silent_) continue;
            accept_all();
            if (cuts_done_ != proxy_.cuts_wanted_ || proxy_.refusing_) {
                cuts_done_ = proxy_.cuts_wanted_;
                for (Pair& pair : pairs_) cut(pair);
            }
            if (losses_done_ != proxy_.losses_wanted_) {
                losses_done_ = proxy_.losses_wanted_;
                for (Pair& pair : pairs_) pair.loses_reply = pair.down.carried_bytes > 0;
            }
            for (Pair& pair : pairs_) carry(pair);
            pairs_.remove_if([](const Pair& pair) { return pair.broken; });
        }
    }

  private:
    void wait() {
        std::vector<pollfd> watched;
        if (!proxy_.silent_) {
            watched.push_back({listener_.get(), POLLIN, 0});
            for (const Pair& pair : pairs_) {
                short client = 0;
                short server = 0;
                if (!pair.connected) server |= POLLOUT;
                if (pair.connected && pair.up.empty() && !pair.up.source_ended && up_allowance_ > 0)
                    client |= POLLIN;
                if (pair.connected && pair.down.empty() && !pair.down.source_ended && down_allowance_ > 0)
                    server |= POLLIN;
                if (!pair.up.empty()) server |= POLLOUT;
                if (!pair.down.empty()) client |= POLLOUT;
                if (client != 0) watched.push_back({pair.client.get(), client, 0});
                if (server != 0) watched.push_back({pair.server.get(), server, 0});
            }
        }
        poll(watched.data(), watched.size(), look_ms);
    }

    // What the rate lets through until the next look.
    void refill() {
        const auto now = Clock::now();
        const uint64_t rate = proxy_.rate_;
        if (rate == 0) {
            up_allowance_ = down_allowance_ = INT64_MAX;
        } else {
            const double fresh =
                std::chrono::duration<double>(now - refilled_).count() * static_cast<double>(rate) +
                fraction_;
            const auto whole = static_cast<int64_t>(fresh);
            fraction_ = fresh - static_cast<double>(whole);
            const auto most = static_cast<int64_t>(std::max<uint64_t>(rate / 10, 1));
            up_allowance_ = std::min(up_allowance_ > most ? whole : up_allowance_ + whole, most);
            down_allowance_ = std::min(down_allowance_ > most ? whole : down_allowance_ + whole, most);
        }
        refilled_ = now;
    }

    void accept_all() {
        while (true) {
            Socket client(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (client.get() < 0) return;
            ++proxy_.connections_;
            if (proxy_.refusing_) {
                client.reset_on_close();
                ++proxy_.resets_;
                continue;
            }
            const Address target(proxy_.there_.address, proxy_.there_.port);
            Pair& pair = pairs_.emplace_back();
            pair.client = std::move(client);
            pair.server = Socket(socket(target.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            for (const Socket* side : {&pair.client, &pair.server})
                set(side->get(), IPPROTO_TCP, TCP_NODELAY);
            if (connect(pair.server.get(), target.get(), target.length) != 0 && errno != EINPROGRESS)
                cut(pair);
        }
    }

    void cut(Pair& pair) {
        if (pair.broken) return;
        pair.client.reset_on_close();
        pair.server.reset_on_close();
        pair.broken = true;
        ++proxy_.resets_;
    }

    void carry(Pair& pair) {
        if (pair.broken) return;
        if (!pair.connected) {
            int error = 0;
            socklen_t length = sizeof error;
            pollfd ready{pair.server.get(), POLLOUT, 0};
            if (poll(&ready, 1, 0) == 0) return;
            getsockopt(pair.server.get(), SOL_SOCKET, SO_ERROR, &error, &length);
            if (error != 0) return cut(pair);
            pair.connected = true;
        }
        move(pair, pair.client, pair.server, pair.up, up_allowance_, proxy_.bytes_up_);
        move(pair, pair.server, pair.client, pair.down, down_allowance_, proxy_.bytes_down_);
        if (pair.up.end_told && pair.down.end_told) pair.broken = true;
    }

    void move(Pair& pair, const Socket& from, const Socket& to, Direction& way, int64_t& allowance,
              std::atomic<uint64_t>& counter) {
        if (pair.broken) return;
        if (way.empty() && !way.source_ended && allowance > 0) {
            const auto most = std::min<uint64_t>(buffer_bytes, static_cast<uint64_t>(allowance));
            const ssize_t got = recv(from.get(), way.buffer.data(), most, 0);
            if (got == 0) way.source_ended = true;
            if (got < 0 && errno != EAGAIN) return cut(pair);
            if (got > 0 && pair.loses_reply && &way == &pair.down) {
                ++proxy_.replies_lost_;
                return cut(pair);
            }
            if (got > 0) {
                way.begin = 0;
                way.end = static_cast<size_t>(got);
                if (allowance != INT64_MAX) allowance -= got;
            }
        }
        if (!way.empty()) {
            const ssize_t put =
                send(to.get(), way.buffer.data() + way.begin, way.end - way.begin, MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN) return cut(pair);
            if (put > 0) {
                way.begin += static_cast<size_t>(put);
                way.carried_bytes += static_cast<uint64_t>(put);
                counter += static_cast<uint64_t>(put);
            }
        }
        if (way.source_ended && way.empty() && !way.end_told) {
            shutdown(to.get(), SHUT_WR);
            way.end_told = true;
        }
        const uint64_t longest = proxy_.longest_bytes_;
        if (longest != 0 && way.carried_bytes >= longest) cut(pair);
    }

    TcpProxy& proxy_;
    Socket listener_;
    uint16_t port_ = 0;
    std::list<Pair> pairs_;
    uint64_t cuts_done_ = 0;
    uint64_t losses_done_ = 0;
    Clock::time_point refilled_ = Clock::now();
    double fraction_ = 0;
    int64_t up_allowance_ = 0;
    int64_t down_allowance_ = 0;
};

TcpProxy::TcpProxy(Place there, Place here) : there_(std::move(there)) {
    loop_ = std::make_unique<Loop>(*this, here);
    port_ = loop_->port();
    thread_ = std::thread([this] { loop_->run(); });
}

TcpProxy::~TcpProxy() {
    ending_ = true;
    thread_.join();
}

}  // namespace goblin::test
