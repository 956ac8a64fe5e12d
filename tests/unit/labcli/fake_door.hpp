// A lab behind the service that does what a test says, with blobs in memory; and the service in front of it.
#pragma once

#include <QTemporaryDir>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "core/error.hpp"
#include "core/work/identity.hpp"
#include "core/work/leaf_stream.hpp"
#include "labcli/service/https_service.hpp"
#include "tests/support/simulated_contributor.hpp"

namespace goblin::lab {

using BytesOfBlob = std::vector<std::byte>;

class FakeSource final : public BlobSource {
  public:
    FakeSource(const BytesOfBlob& bytes, std::atomic<uint64_t>& leaves_read)
        : bytes_(bytes), leaves_read_(leaves_read) {}
    uint64_t size_bytes() const override { return bytes_.size(); }
    void read_leaf(uint64_t index, std::span<std::byte> leaf) override {
        if (index == fails_at)
            throw Error(ErrorKind::io, "expected to read leaf {}, found a broken disk", index);
        if (!leaf.empty()) std::memcpy(leaf.data(), bytes_.data() + index * leaf_size_bytes, leaf.size());
        ++leaves_read_;
    }
    uint64_t fails_at = UINT64_MAX;

  private:
    const BytesOfBlob& bytes_;
    std::atomic<uint64_t>& leaves_read_;
};

struct FakeUpload {
    explicit FakeUpload(uint64_t size_bytes) : bytes(size_bytes) {}
    BytesOfBlob bytes;
    std::atomic<uint64_t> held = 0;
    std::atomic<bool> finished = false;
    std::atomic<bool> wanted = true;
};

class FakeSink final : public BlobSink {
  public:
    explicit FakeSink(FakeUpload& upload) : upload_(upload) {}
    uint64_t size_bytes() const override { return upload_.bytes.size(); }
    uint64_t leaves_held() const override { return upload_.held; }
    bool wanted() const override { return upload_.wanted; }
    void write_leaf(uint64_t index, std::span<const std::byte> leaf) override {
        if (index != upload_.held)
            throw Error(ErrorKind::failed, "expected leaf {}, found {}", upload_.held.load(), index);
        if (!leaf.empty())
            std::memcpy(upload_.bytes.data() + index * leaf_size_bytes, leaf.data(), leaf.size());
        ++upload_.held;
    }

  private:
    FakeUpload& upload_;
};

// What a test sets up before the service starts is read without a lock afterwards; uploads can be added
// later.
class FakeDoor final : public ContributorDoor {
  public:
    using OnExchange = std::function<void(const Caller&, ExchangeRequest, Done<ExchangeReply>)>;

    Credential credential = random_bytes<Credential>();
    OnExchange on_exchange;
    std::map<Digest, BytesOfBlob> blobs;
    uint64_t source_fails_at = UINT64_MAX;
    std::atomic<uint64_t> exchanges = 0;
    std::atomic<uint64_t> leaves_read = 0;
    std::atomic<uint64_t> sources_opened = 0;

    FakeUpload& expect_upload(const Digest& digest, uint64_t size_bytes) {
        const std::lock_guard lock(mutex_);
        return *uploads_.emplace(digest, std::make_unique<FakeUpload>(size_bytes)).first->second;
    }

    LabInfo info() override {
        LabInfo info;
        info.name = "A lab";
        info.computes = "Sums";
        info.contact = "lab@example.org";
        info.nonce = Bytes(16, 7);
        return info;
    }
    void enrol(const Peer&, EnrolRequest request, Done<EnrolReply> done) override {
        if (request.token != Bytes{1, 2, 3})
            return done(Refusal{403, {"token", "expected a valid invitation"}, 2500});
        done(EnrolReply{credential, true});
    }
    void exchange(const Caller& caller, ExchangeRequest request, Done<ExchangeReply> done) override {
        ++exchanges;
        if (!known(caller)) return done(stranger());
        if (on_exchange) return on_exchange(caller, std::move(request), std::move(done));
        done(acknowledging(request));
    }
    void open_blob(const Caller& caller, const Digest& digest,
                   Done<std::shared_ptr<BlobSource>> done) override {
        if (!known(caller)) return done(stranger());
        const auto found = blobs.find(digest);
        if (found == blobs.end())
            return done(Refusal{404, {"blob", "expected an input of an open assignment"}, 0});
        auto source = std::make_shared<FakeSource>(found->second, leaves_read);
        ++sources_opened;
        source->fails_at = source_fails_at;
        done(std::shared_ptr<BlobSource>(std::move(source)));
    }
    void open_upload(const Caller& caller, const Digest& digest,
                     Done<std::shared_ptr<BlobSink>> done) override {
        if (!known(caller)) return done(stranger());
        FakeUpload* const upload = find_upload(digest);
        if (!upload) return done(Refusal{403, {"blob", "expected a digest that was asked for"}, 0});
        done(std::shared_ptr<BlobSink>(std::make_shared<FakeSink>(*upload)));
    }
    void finish_upload(const Caller&, const Digest& digest, std::shared_ptr<BlobSink>,
                       Done<Nothing> done) override {
        find_upload(digest)->finished = true;
        done(Nothing{});
    }

    static ExchangeReply acknowledging(const ExchangeRequest& request) {
        ExchangeReply reply;
        for (const Result& result : request.results)
            reply.acknowledged.push_back({result.assignment, ReceiptKind::taken, {}});
        return reply;
    }

  private:
    FakeUpload* find_upload(const Digest& digest) {
        const std::lock_guard lock(mutex_);
        const auto found = uploads_.find(digest);
        return found == uploads_.end() ? nullptr : found->second.get();
    }
    std::mutex mutex_;
    std::map<Digest, std::unique_ptr<FakeUpload>> uploads_;

    bool known(const Caller& caller) const { return caller.credential == credential; }
    static Refusal stranger() {
        return {401, {"credential", "expected a credential of this lab, found another"}, 0};
    }
};

// One certificate for all services of a test program.
inline const LabCertificate& test_certificate() {
    static const QTemporaryDir directory;
    static const LabCertificate made = make_certificate(directory.filePath("key.pem").toStdString(),
                                                        directory.filePath("certificate.pem").toStdString());
    return made;
}

class LabAtTest {
  public:
    FakeDoor door;
    ServiceLimits limits;
    std::unique_ptr<HttpsService> service;

    void start(uint64_t io_threads = 1) {
        HttpsService::Settings settings;
        settings.address = "127.0.0.1";
        settings.port = 0;
        settings.io_threads = io_threads;
        settings.limits = limits;
        service = std::make_unique<HttpsService>(test_certificate(), door, settings);
    }
    test::HttpsClient::Settings client_settings() const {
        test::HttpsClient::Settings settings;
        settings.port = service->port();
        settings.lab_key = test_certificate().key;
        return settings;
    }
    test::SimulatedContributor contributor(test::HttpsClient::Settings settings) const {
        test::SimulatedContributor made(std::move(settings));
        made.credential = door.credential;
        return made;
    }
    test::SimulatedContributor contributor() const { return contributor(client_settings()); }
};

}  // namespace goblin::lab
