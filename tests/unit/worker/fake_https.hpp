// An HTTPS server in the test's own event loop, which can misbehave on purpose: be silent, cut connections
// after so many bytes, count what reaches it.
#pragma once

#include <QSslSocket>
#include <QTcpServer>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/worker/certificate.hpp"

namespace goblin::test {

struct FakeRequest {
    std::string method;
    std::string target;
    std::map<std::string, std::string> fields;  // names in lower case
    QByteArray body;
};

struct FakeReply {
    int status = 200;
    std::vector<std::string> fields;  // whole lines
    QByteArray body;
    bool chunked = false;
    std::optional<qsizetype> cut_after;  // break the connection after so many bytes of the body
    bool cut = false;                    // break it without an answer
    bool close = false;                  // "Connection: close", and do so
};

class FakeHttps : public QTcpServer {
  public:
    using Answer = std::function<void(FakeReply)>;
    using Handler = std::function<void(const FakeRequest&, Answer)>;

    FakeHttps(Certificate certificate, Handler handler,
              const QHostAddress& address = QHostAddress::LocalHost);

    // Stop listening and break all connections; listen again at the same port.
    void go_away();
    void come_back();
    void break_connections();
    // For connections from now on.
    void show(Certificate certificate) { certificate_ = std::move(certificate); }

    bool silent = false;                           // take requests, answer none
    std::optional<qsizetype> cut_request_after;    // break the next PUT after so many bytes of its body
    std::function<void(FakeRequest)> cut_request;  // gets what had arrived of it
    qint64 plain_bytes = 0;                        // what ever arrived, decrypted
    int connections = 0;
    int handshakes = 0;
    std::vector<FakeRequest> requests;

  protected:
    void incomingConnection(qintptr descriptor) override;

  private:
    struct Connection {
        QByteArray input;
        std::optional<FakeRequest> head;  // its body is still coming
        bool answering = false;
    };
    void read(QSslSocket* socket);
    bool take_request(QSslSocket* socket, Connection& connection);
    void answer(QSslSocket* socket, const FakeReply& reply);

    Certificate certificate_;
    Handler handler_;
    QHostAddress address_;
    quint16 port_ = 0;
    std::map<QSslSocket*, Connection> open_;
};

}  // namespace goblin::test
