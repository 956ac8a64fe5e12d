// A TCP proxy on loopback that can be told to misbehave: to cut, to go silent, to be slow. For tests of what
// a bad network does to programs that speak through it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace goblin::test {

class TcpProxy {
  public:
    struct Place {
        std::string address;  // "127.0.0.1", "::1"
        uint16_t port;        // of our own: 0 is any free one
    };
    // Every connection to `here` is joined to one of its own to `there`. Throws std::runtime_error when it
    // can't listen.
    TcpProxy(Place there, Place here);
    explicit TcpProxy(uint16_t port_there) : TcpProxy({"127.0.0.1", port_there}, {"127.0.0.1", 0}) {}
    ~TcpProxy();
    TcpProxy(const TcpProxy&) = delete;
    TcpProxy& operator=(const TcpProxy&) = delete;

    uint16_t port() const { return port_; }

    // Resets every connection at once. New ones are taken.
    void cut() { ++cuts_wanted_; }
    // Resets every connection, and every new one until accept_again().
    void refuse() { refusing_ = true; }
    void accept_again() { refusing_ = false; }
    // Nothing is carried and nothing closed, as if a cable had been pulled: what is sent disappears into the
    // silence. New connections are taken by the system, and met with the same silence.
    void go_silent() { silent_ = true; }
    void speak_again() { silent_ = false; }
    // Whatever the server says next on connections that have carried something is lost, with the connection:
    // what it did is done, and the client doesn't know.
    void lose_replies() { ++losses_wanted_; }
    // Bytes a second of all connections together, in each direction; 0: as fast as it goes.
    void limit_rate(uint64_t bytes_per_second) { rate_ = bytes_per_second; }
    // A connection that has carried so many bytes in one direction is reset; 0: never.
    void cut_each_after(uint64_t bytes) { longest_bytes_ = bytes; }

    // Carried since the start: `up` towards `there`, `down` back.
    uint64_t bytes_up() const { return bytes_up_; }
    uint64_t bytes_down() const { return bytes_down_; }
    uint64_t connections() const { return connections_; }
    // Connections that were reset by cut(), refuse(), cut_each_after() or lose_replies().
    uint64_t resets() const { return resets_; }
    uint64_t replies_lost() const { return replies_lost_; }

  private:
    class Loop;
    friend class Loop;

    Place there_;
    uint16_t port_ = 0;
    std::atomic<uint64_t> cuts_wanted_{0};
    std::atomic<uint64_t> losses_wanted_{0};
    std::atomic<bool> refusing_{false};
    std::atomic<bool> silent_{false};
    std::atomic<uint64_t> rate_{0};
    std::atomic<uint64_t> longest_bytes_{0};
    std::atomic<uint64_t> bytes_up_{0};
    std::atomic<uint64_t> bytes_down_{0};
    std::atomic<uint64_t> connections_{0};
    std::atomic<uint64_t> resets_{0};
    std::atomic<uint64_t> replies_lost_{0};
    std::atomic<bool> ending_{false};
    std::unique_ptr<Loop> loop_;
    std::thread thread_;
};

}  // namespace goblin::test
