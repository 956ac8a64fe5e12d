// The lab node's HTTPS service: what contributors connect to. See core/work/exchange.hpp for the requests it
// knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/work/link.hpp"
#include "labcli/log/log_sink.hpp"
#include "labcli/service/certificate.hpp"
#include "labcli/service/contributor_door.hpp"
#include "labcli/service/service_limits.hpp"

namespace goblin::lab {

class HttpsService {
  public:
    struct Settings {
        // An IPv4 or IPv6 address, or "*" for all of both families. Port 0: any free one.
        std::string address = "*";
        uint16_t port = default_port;
        uint64_t io_threads = 1;
        uint64_t blob_threads = 2;
        ServiceLimits limits;
        LogSink log;
    };

    // Listens when it returns. The door must live longer. Throws ErrorKind::usage for an address that is
    // none, ErrorKind::network when it can't listen there.
    HttpsService(const LabCertificate& certificate, ContributorDoor& door, Settings settings);
    ~HttpsService();
    HttpsService(const HttpsService&) = delete;
    HttpsService& operator=(const HttpsService&) = delete;

    uint16_t port() const;
    uint64_t open_connections() const;
    // Accepts nobody any more, sends the answers that are ready and returns within two seconds. May be called
    // again.
    void stop();

  private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace goblin::lab
