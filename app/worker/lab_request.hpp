// One request with a small answer to a lab node, whole: what every part but the transfers of blobs needs.
#pragma once

#include <functional>
#include <variant>

#include "app/worker/http_connection.hpp"
#include "app/worker/lab_refusal.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

// The lab's answer, its refusal, or why there was none.
using LabAnswer = std::variant<Bytes, LabRefusal, Error>;

HttpField authorization(const Credential& credential);
HttpRequest post_request(std::string target, const Bytes& body);

// `answered` is called once unless the connection is aborted. An answer longer than `limit_bytes` is an
// Error.
void ask_lab(HttpConnection& connection, HttpRequest request, uint64_t limit_bytes,
             std::function<void(LabAnswer)> answered);

}  // namespace goblin::worker
