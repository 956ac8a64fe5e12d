// Speaks the contributors' side of the protocol.
#include "tests/support/simulated_contributor.hpp"

#include "core/work/hex.hpp"
#include "core/work/leaf_stream.hpp"

namespace goblin::test {

void expect_accepted(const HttpReply& reply) {
    if (reply.status < 300) return;
    ErrorReply error;
    if (!reply.body.empty()) error = decode_message<ErrorReply>(reply.body);
    throw Refused{reply.status, error, reply.header("retry-after")};
}

std::string SimulatedContributor::authorization() const {
    return "Authorization: Goblin " + to_hex(credential) + "\r\n";
}

LabInfo SimulatedContributor::lab_info() {
    const HttpReply reply = client_.request("GET", "/v1/lab");
    expect_accepted(reply);
    return decode_message<LabInfo>(reply.body);
}

EnrolReply SimulatedContributor::enrol(const EnrolRequest& request) {
    const HttpReply reply = client_.request("POST", "/v1/enrol", {}, encode_message(request));
    expect_accepted(reply);
    const auto enrolled = decode_message<EnrolReply>(reply.body);
    credential = enrolled.credential;
    return enrolled;
}

ExchangeReply SimulatedContributor::exchange(const ExchangeRequest& request) {
    const HttpReply reply = client_.request("POST", "/v1/exchange", authorization(), encode_message(request));
    expect_accepted(reply);
    return decode_message<ExchangeReply>(reply.body);
}

std::vector<std::byte> SimulatedContributor::get_blob(const Digest& digest, uint64_t size_bytes,
                                                      uint64_t first) {
    std::vector<std::byte> bytes;
    bytes.reserve(size_bytes - first * leaf_size_bytes);
    LeafDecoder decoder(size_bytes, first, [&](uint64_t, std::span<const std::byte> leaf) {
        bytes.insert(bytes.end(), leaf.begin(), leaf.end());
    });
    std::vector<uint8_t> refusal;
    const std::string target = fmt::format("/v1/blobs/{}?leaf={}", digest.hex(), first);
    HttpReply reply =
        client_.request("GET", target, authorization(), {}, [&](int status, std::span<const uint8_t> piece) {
            if (status == 200)
                decoder.add(piece);
            else
                refusal.insert(refusal.end(), piece.begin(), piece.end());
        });
    reply.body = std::move(refusal);
    expect_accepted(reply);
    if (!decoder.complete())
        throw Error(ErrorKind::network, "expected the whole blob, found {} leaves", decoder.next_leaf());
    return bytes;
}

uint64_t SimulatedContributor::leaves_arrived(const Digest& digest) {
    const HttpReply reply = client_.request("HEAD", "/v1/blobs/" + digest.hex(), authorization());
    expect_accepted(reply);
    return std::stoull(reply.header("goblin-leaves"));
}

int SimulatedContributor::put_blob(const Digest& digest, std::span<const std::byte> bytes, uint64_t first) {
    const auto leaf = [&](uint64_t index) {
        return bytes.subspan(index * leaf_size_bytes, leaf_length(bytes.size(), index));
    };
    const uint64_t leaves = leaf_count(bytes.size());
    const bool pack = packing_helps(leaf(0));
    std::vector<uint8_t> stream;
    for (uint64_t index = first; index < leaves; ++index) append_leaf(stream, leaf(index), pack);
    const std::string target = fmt::format("/v1/blobs/{}?leaf={}", digest.hex(), first);
    const HttpReply reply = client_.request("PUT", target, authorization(), stream);
    expect_accepted(reply);
    return reply.status;
}

}  // namespace goblin::test
