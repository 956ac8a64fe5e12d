// Collects a small answer and tells refusals from answers.
#include "app/worker/lab_request.hpp"

#include <memory>

#include "core/work/hex.hpp"

namespace goblin::worker {

HttpField authorization(const Credential& credential) {
    return {"Authorization", "Goblin " + to_hex(credential)};
}

HttpRequest post_request(std::string target, const Bytes& body) {
    HttpRequest request;
    request.method = "POST";
    request.target = std::move(target);
    request.fields.push_back({"Content-Type", "application/cbor"});
    request.body =
        QByteArray(reinterpret_cast<const char*>(body.data()), static_cast<qsizetype>(body.size()));
    return request;
}

void ask_lab(HttpConnection& connection, HttpRequest request, uint64_t limit_bytes,
             std::function<void(LabAnswer)> answered) {
    struct Collected {
        ResponseHead head;
        Bytes body;
    };
    const auto collected = std::make_shared<Collected>();
    HttpHandlers handlers;
    handlers.head = [collected](const ResponseHead& head) { collected->head = head; };
    handlers.body = [collected, limit_bytes](std::span<const uint8_t> piece) {
        if (collected->body.size() + piece.size() > limit_bytes)
            throw Error(ErrorKind::network, "expected an answer of at most {} bytes, found a longer one",
                        limit_bytes);
        collected->body.insert(collected->body.end(), piece.begin(), piece.end());
    };
    handlers.done = [collected, answered] {
        if (collected->head.status >= 200 && collected->head.status < 300)
            answered(std::move(collected->body));
        else
            answered(refusal_of(collected->head, collected->body));
    };
    handlers.failed = [answered](const Error& error) { answered(error); };
    connection.send(std::move(request), std::move(handlers));
}

}  // namespace goblin::worker
