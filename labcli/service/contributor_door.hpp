// What the HTTPS service asks of the lab node on behalf of contributors. The service knows HTTP and TLS, the
// other side of this interface knows assignments; neither knows the other's business.
//
// All functions may be called on any I/O thread, return at once, and answer through `done`, which is called
// exactly once, on any thread. Nothing throws.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/work/exchange.hpp"
#include "labcli/records/answer.hpp"
#include "labcli/records/peer.hpp"

namespace goblin::lab {

struct Caller {
    Peer peer;
    Credential credential{};
};

// A blob that may be read. Methods block on disk and run on the service's blob threads; they throw
// goblin::Error.
class BlobSource {
  public:
    virtual ~BlobSource() = default;
    virtual uint64_t size_bytes() const = 0;
    // Fills `bytes` (the whole of leaf `index`).
    virtual void read_leaf(uint64_t index, std::span<std::byte> bytes) = 0;
};

// An upload under way. Methods block on disk and run on the service's blob threads, one at a time; they throw
// goblin::Error.
class BlobSink {
  public:
    virtual ~BlobSink() = default;
    virtual uint64_t size_bytes() const = 0;
    // Leaves that have arrived, in earlier requests too.
    virtual uint64_t leaves_held() const = 0;
    // Whether the lab still takes it; looked at with every piece that arrives.
    virtual bool wanted() const = 0;
    // Leaf `index` == leaves_held(). Throws ErrorKind::cancelled when it is no longer wanted.
    virtual void write_leaf(uint64_t index, std::span<const std::byte> bytes) = 0;
};

struct Nothing {};

class ContributorDoor {
  public:
    virtual ~ContributorDoor() = default;
    // Who the lab is, with a fresh nonce. Doesn't block.
    virtual LabInfo info() = 0;
    virtual void enrol(const Peer& peer, EnrolRequest request, Done<EnrolReply> done) = 0;
    // May take up to request.wait_ms (at most limits::exchange_wait_ms) before it answers.
    virtual void exchange(const Caller& caller, ExchangeRequest request, Done<ExchangeReply> done) = 0;
    // Only for inputs of the caller's open assignments.
    virtual void open_blob(const Caller& caller, const Digest& digest,
                           Done<std::shared_ptr<BlobSource>> done) = 0;
    // Only for a digest that the caller committed to and was asked to send.
    virtual void open_upload(const Caller& caller, const Digest& digest,
                             Done<std::shared_ptr<BlobSink>> done) = 0;
    // All leaves are there: hands them to the verifier, which checks the digest. What is lost before the
    // verdict is asked for again.
    virtual void finish_upload(const Caller& caller, const Digest& digest, std::shared_ptr<BlobSink> sink,
                               Done<Nothing> done) = 0;
};

}  // namespace goblin::lab
