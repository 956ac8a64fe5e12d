// Which request asks for what: one table from method and path to what is done, and the loop that serves a
// connection.
#pragma once

#include <memory>

#include "labcli/log/log_sink.hpp"
#include "labcli/service/contributor_door.hpp"
#include "labcli/service/http_stream.hpp"
#include "labcli/service/upload_turns.hpp"
#include "labcli/threads/work_pool.hpp"

namespace goblin::lab {

// What requests need, shared by all connections.
struct ServiceParts {
    ContributorDoor& door;
    const ServiceLimits& limits;
    Admission& admission;
    WorkPool& blob_threads;
    UploadTurns& upload_turns;
    LogSink log;
};

// One request under way.
struct RequestAtHand {
    HttpStream& stream;
    const RequestHead& head;
    ServiceParts& parts;

    Caller caller() const { return {stream.peer(), credential_of(head)}; }
};

// Serves one connection to its end. Throws nothing.
asio::awaitable<void> serve_connection(std::shared_ptr<HttpStream> stream, ServiceParts& parts,
                                       Admission::Share share);

// GET, PUT and HEAD of a blob.
asio::awaitable<void> send_blob(RequestAtHand& request, Digest digest);
asio::awaitable<void> receive_blob(RequestAtHand& request, Digest digest);
asio::awaitable<void> tell_upload(RequestAtHand& request, Digest digest);

// The value of an answer; a refusal is thrown as Refused.
template <typename T>
T accepted(Answer<T> answer) {
    if (auto* refusal = std::get_if<Refusal>(&answer)) throw Refused{std::move(*refusal)};
    return std::move(std::get<T>(answer));
}

}  // namespace goblin::lab
