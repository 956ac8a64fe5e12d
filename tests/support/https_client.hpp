// A small blocking HTTPS client that trusts one key: for tests and benchmarks, written apart from the service
// so that each checks the other. Keeps its connection; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/work/digest.hpp"

namespace goblin::test {

struct HttpReply {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::vector<uint8_t> body;

    std::string header(const std::string& name) const;
};

class HttpsClient {
  public:
    struct Settings {
        std::string address = "127.0.0.1";
        uint16_t port = 0;
        Digest lab_key;
        std::string from;              // the local address to connect from; empty: any
        int tls_version = 0;           // OpenSSL's number of the only version to speak; 0: any
        int timeout_ms = 30'000;       // of each read and write
        int receive_buffer_bytes = 0;  // 0: the system's choice
    };

    explicit HttpsClient(Settings settings);
    ~HttpsClient();
    HttpsClient(HttpsClient&&) noexcept;

    // Throw ErrorKind::network when the connection fails, ErrorKind::denied for another key.
    void connect();
    void connect_without_tls();
    void disconnect();
    // Goes away without goodbye, by a TCP reset.
    void reset();
    bool connected() const;

    // Connects when it isn't; tries once more when a kept connection turns out to be closed. `headers`: whole
    // lines.
    HttpReply request(std::string_view method, std::string_view target, std::string_view headers = {},
                      std::span<const uint8_t> body = {});
    // Hands the body over as it arrives instead of collecting it.
    using TakeBody = std::function<void(int status, std::span<const uint8_t>)>;
    HttpReply request(std::string_view method, std::string_view target, std::string_view headers,
                      std::span<const uint8_t> body, const TakeBody& take);

    // The parts of a request, for tests that misbehave.
    void send(std::string_view bytes);
    void send(std::span<const uint8_t> bytes);
    HttpReply receive(bool is_head = false);
    // Whether the peer closes within the time; what arrives until then is dropped.
    bool closes_within(int ms);
    std::string tls_version() const;

  private:
    struct Connection;

    HttpReply receive(bool is_head, const TakeBody& take);
    void fill();

    Settings settings_;
    std::unique_ptr<Connection> connection_;
};

}  // namespace goblin::test
