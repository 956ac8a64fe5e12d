// One kept-alive HTTPS connection to a lab node, which must show the key that is pinned (see lab_pin.hpp).
//
// Not QNetworkAccessManager: that writes the request as soon as the connection is encrypted, before anybody
// could compare the key. Here nothing is written before the key has been checked, redirects are answers like
// any other, and bodies pass through in pieces.
#pragma once

#include <QSslSocket>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/worker/http_message.hpp"
#include "app/worker/lab_address.hpp"
#include "app/worker/lab_pin.hpp"
#include "core/error.hpp"

namespace goblin::worker {

struct HttpRequest {
    std::string method = "GET";
    std::string target = "/";
    std::vector<HttpField> fields;
    QByteArray body;
    // Instead of `body`, for large ones: appends the next piece, until `streamed_bytes` are there.
    std::function<void(QByteArray& piece)> next_piece;
    uint64_t streamed_bytes = 0;
    uint64_t silence_ms = 30'000;  // how long the lab may say nothing
};

// All are called in the connection's thread. After `done` or `failed` nothing more is called, and the next
// request may be sent, also from inside them.
struct HttpHandlers {
    std::function<void(const ResponseHead&)> head;
    std::function<void(std::span<const uint8_t>)> body;
    std::function<void()> done;
    std::function<void(const Error&)> failed;
};

class HttpConnection : public QObject {
  public:
    // `pin` outlives this.
    HttpConnection(LabAddress address, LabPin& pin, QObject* parent = nullptr);
    ~HttpConnection() override;

    // One request at a time. What `head`, `body` and `next_piece` throw makes the request fail with that
    // error; they must not call abort().
    void send(HttpRequest request, HttpHandlers handlers);
    bool busy() const { return exchange_ != nullptr; }
    // The keys that the lab showed, newest first, each signed by the next (see core/work/key_chain.hpp).
    const std::vector<Digest>& shown_keys() const { return shown_keys_; }
    // Drops the request in progress and the connection; no handler is called.
    void abort();

  private:
    struct Exchange {
        HttpRequest request;
        HttpHandlers handlers;
        std::unique_ptr<ResponseReader> reader;
        bool on_used_connection = false;
        uint64_t streamed_bytes = 0;
        bool sent = false;       // the whole request is in the socket's buffer
        bool restarted = false;  // a kept-alive connection had been closed meanwhile
    };

    void connect_socket();
    void drop_socket();
    void check_certificate(const QList<QSslError>& errors);
    void encrypted();
    void write_request();
    void write_body();
    void read_response();
    void finish();
    void fail(const Error& error);
    void disconnected();
    bool restart_on_fresh_connection();

    LabAddress address_;
    LabPin& pin_;
    std::vector<Digest> shown_keys_;
    std::unique_ptr<QSslSocket> socket_;
    bool key_checked_ = false;
    bool used_ = false;
    std::unique_ptr<Exchange> exchange_;
    QTimer silence_;
    std::vector<uint8_t> buffer_;
};

}  // namespace goblin::worker
