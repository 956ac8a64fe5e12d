// Serves connections: the table of routes and the requests that carry messages.
#include "labcli/service/routes.hpp"

#include <array>
#include <exception>

#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

using Handler = asio::awaitable<void> (*)(RequestAtHand&);

template <typename T>
Reply reply_of_message(const T& message) {
    Reply reply;
    reply.body = encode_message(message);
    return reply;
}

// The versions are looked at before the rest, which another version may have written otherwise.
template <typename M>
M decoded(const Body& body) {
    try {
        const std::string mismatch =
            version_mismatch(leading_versions(body.bytes), "contributor", "lab node");
        if (!mismatch.empty()) throw refused(426, "version", mismatch);
        return decode_message<M>(body.bytes);
    } catch (const Error& error) {
        throw refused(400, "message", error.what());
    }
}

asio::awaitable<void> front_page(RequestAtHand& request) {
    const LabInfo info = request.parts.door.info();
    const std::string text = fmt::format(
        "{}\n{}\nContact: {}\nThis is a GPU Goblin lab node. Contributors join it by an invitation link.\n",
        info.name, info.computes, info.contact);
    Reply reply;
    reply.content_type = "text/plain; charset=utf-8";
    reply.more_headers = "X-Content-Type-Options: nosniff\r\n";
    reply.body.assign(text.begin(), text.end());
    co_await request.stream.reply(std::move(reply));
}

asio::awaitable<void> lab_info(RequestAtHand& request) {
    Reply reply = reply_of_message(request.parts.door.info());
    co_await request.stream.reply(std::move(reply));
}

asio::awaitable<void> enrol(RequestAtHand& request) {
    const Body body = co_await request.stream.read_body(request.parts.limits.small_body_bytes);
    auto pending = request.stream.pending<Answer<EnrolReply>>();
    request.parts.door.enrol(request.stream.peer(), decoded<EnrolRequest>(body), pending.receiver());
    Answer<EnrolReply> answer = co_await request.stream.answer(pending, true);
    Reply reply = reply_of_message(accepted(std::move(answer)));
    co_await request.stream.reply(std::move(reply));
}

asio::awaitable<void> exchange(RequestAtHand& request) {
    const Caller caller = request.caller();
    auto pending = request.stream.pending<Answer<ExchangeReply>>();
    {
        const Body body = co_await request.stream.read_body(request.parts.limits.exchange_bytes);
        auto message = decoded<ExchangeRequest>(body);
        message.wait_ms = std::min(message.wait_ms, request.parts.limits.exchange_wait_ms);
        request.parts.door.exchange(caller, std::move(message), pending.receiver());
    }
    Answer<ExchangeReply> answer = co_await request.stream.answer(pending, true);
    Reply reply = reply_of_message(accepted(std::move(answer)));
    if (reply.body.size() > request.parts.limits.exchange_bytes)
        throw Error(ErrorKind::failed, "expected an exchange's reply of at most {} bytes, found {}",
                    request.parts.limits.exchange_bytes, reply.body.size());
    co_await request.stream.reply(std::move(reply));
}

constexpr std::string_view blob_prefix = "/v1/blobs/";

Digest digest_of(const RequestHead& head) {
    const auto digest = Digest::from_hex(std::string_view(head.path).substr(blob_prefix.size()));
    if (!digest)
        throw refused(404, "path",
                      "expected a digest of 64 hexadecimal digits behind /v1/blobs/, found something else");
    return *digest;
}
asio::awaitable<void> get_blob(RequestAtHand& request) {
    return send_blob(request, digest_of(request.head));
}
asio::awaitable<void> put_blob(RequestAtHand& request) {
    return receive_blob(request, digest_of(request.head));
}
asio::awaitable<void> head_blob(RequestAtHand& request) {
    return tell_upload(request, digest_of(request.head));
}

struct Route {
    std::string_view path;
    bool is_prefix;
    Method method;
    const char* method_name;
    bool takes_body;
    Handler handler;
};
constexpr std::array routes = {
    Route{"/", false, Method::get, "GET", false, front_page},
    Route{"/v1/lab", false, Method::get, "GET", false, lab_info},
    Route{"/v1/enrol", false, Method::post, "POST", true, enrol},
    Route{"/v1/exchange", false, Method::post, "POST", true, exchange},
    Route{blob_prefix, true, Method::get, "GET", false, get_blob},
    Route{blob_prefix, true, Method::head, "HEAD", false, head_blob},
    Route{blob_prefix, true, Method::put, "PUT", true, put_blob},
};

const Route& route_of(const RequestHead& head) {
    std::string allowed;
    for (const Route& route : routes) {
        if (route.is_prefix ? !head.path.starts_with(route.path) : head.path != route.path) continue;
        if (route.method == head.method) return route;
        allowed += (allowed.empty() ? "" : ", ") + std::string(route.method_name);
    }
    if (allowed.empty()) throw refused(404, "path", "expected a path of the lab node, found another");
    throw refused(405, "method", fmt::format("expected {} here, found another method", allowed));
}

asio::awaitable<void> answer_request(RequestAtHand& request) {
    const Route& route = route_of(request.head);
    if (route.takes_body && !request.head.has_content_length)
        throw refused(411, "length", "expected a body with Content-Length, found none");
    if (!route.takes_body && request.head.content_length > 0)
        throw refused(413, "length", "expected no body here, found one");
    return route.handler(request);
}

void log_end(const ServiceParts& parts, const HttpStream& stream, LogLevel level, std::string_view what) {
    if (parts.log)
        parts.log(level, fmt::format("connection of {}: {}", stream.peer().address, escaped(what)));
}

// One request and its reply; false when the connection ends after it.
asio::awaitable<bool> serve_request(HttpStream& stream, ServiceParts& parts) {
    std::optional<Refusal> refusal;
    std::optional<RequestHead> head;
    try {
        head = co_await stream.read_head();
        if (!head) co_return false;
    } catch (const Refused& refused_head) {
        refusal = refused_head.refusal;
        stream.close_after_reply();
    }
    if (head) {
        RequestAtHand request{stream, *head, parts};
        try {
            co_await answer_request(request);
        } catch (const Refused& refused_request) {
            refusal = refused_request.refusal;
        } catch (const Error& error) {
            log_end(parts, stream, LogLevel::error, error.what());
            refusal = Refusal{500, {"failed", "the lab node could not answer; its log says why"}, 0};
        }
    }
    if (refusal) {
        log_end(parts, stream, LogLevel::debug, refusal->error.message);
        Reply reply = reply_of(*refusal);
        co_await stream.reply(std::move(reply));
    }
    co_return stream.keeps_alive();
}

}  // namespace

asio::awaitable<void> serve_connection(std::shared_ptr<HttpStream> stream, ServiceParts& parts,
                                       Admission::Share share) {
    const Admission::Share held = std::move(share);
    try {
        co_await stream->handshake();
        bool another = true;
        while (another) another = co_await serve_request(*stream, parts);
        co_await stream->finish();
    } catch (const ConnectionEnd& end) {
        log_end(parts, *stream, LogLevel::debug, end.reason);
    } catch (const std::exception& error) {
        log_end(parts, *stream, LogLevel::error, error.what());
    }
}

}  // namespace goblin::lab
