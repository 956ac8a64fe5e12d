// A contributor as the lab node sees it, without computing: the protocol's requests as functions. For tests
// and benchmarks; blocking, one connection, not thread-safe.
#pragma once

#include "core/work/exchange.hpp"
#include "tests/support/https_client.hpp"

namespace goblin::test {

// The lab said no.
struct Refused {
    int status;
    ErrorReply error;
    std::string retry_after;
};

class SimulatedContributor {
  public:
    explicit SimulatedContributor(HttpsClient::Settings lab) : client_(std::move(lab)) {}

    HttpsClient& client() { return client_; }
    Credential credential{};

    // All throw Refused for a refusal and goblin::Error when the connection fails.
    LabInfo lab_info();
    EnrolReply enrol(const EnrolRequest& request);  // keeps the credential
    ExchangeReply exchange(const ExchangeRequest& request);
    // The bytes from leaf `first` on.
    std::vector<std::byte> get_blob(const Digest& digest, uint64_t size_bytes, uint64_t first = 0);
    uint64_t leaves_arrived(const Digest& digest);
    // Leaves `first` to the end, packed where that helps; the reply's status.
    int put_blob(const Digest& digest, std::span<const std::byte> bytes, uint64_t first = 0);

    std::string authorization() const;

  private:
    HttpsClient client_;
};

// Throws Refused unless the status is one of success.
void expect_accepted(const HttpReply& reply);

}  // namespace goblin::test
