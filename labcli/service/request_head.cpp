// Parses request heads with Boost.Beast.
#include "labcli/service/request_head.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>

#include "core/work/hex.hpp"
#include "core/work/limits.hpp"

namespace goblin::lab {

namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;

Refused malformed(std::string message) {
    return refused(400, "message", std::move(message));
}

Method method_of(http::verb verb) {
    switch (verb) {
        case http::verb::get:
            return Method::get;
        case http::verb::head:
            return Method::head;
        case http::verb::post:
            return Method::post;
        case http::verb::put:
            return Method::put;
        default:
            return Method::other;
    }
}

void check_body_length(const Parser& parser) {
    const auto& fields = parser.get();
    if (fields.count(http::field::transfer_encoding) == 0) return;
    if (fields.count(http::field::content_length) != 0)
        throw malformed("expected either Content-Length or Transfer-Encoding, found both");
    throw refused(411, "length",
                  "expected a body with Content-Length, found Transfer-Encoding; send the length");
}

bool expects_continue(const Parser& parser) {
    const auto expect = parser.get()[http::field::expect];
    if (expect.empty()) return false;
    if (!boost::beast::iequals(expect, "100-continue"))
        throw refused(417, "message", "expected no Expect but '100-continue', found another");
    return true;
}

}  // namespace

Refused refused(int status, std::string code, std::string message, uint64_t retry_after_ms) {
    return {Refusal{status, ErrorReply{std::move(code), std::move(message)}, retry_after_ms}};
}

RequestHead parse_head(std::span<const uint8_t> text) {
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(text.size()));
    parser.body_limit(boost::none);  // each route has its own
    boost::system::error_code error;
    const size_t taken = parser.put(boost::asio::buffer(text.data(), text.size()), error);
    if (error || !parser.is_header_done() || taken != text.size())
        throw malformed(fmt::format("expected an HTTP/1.1 request, found {}",
                                    error ? error.message() : "something else"));
    const auto& fields = parser.get();
    if (fields.version() != 11)
        throw refused(505, "version",
                      "expected HTTP/1.1, found another version; use a program that speaks it");
    if (fields.count(http::field::host) != 1) throw malformed("expected one Host header");
    if (fields.count(http::field::authorization) > 1)
        throw malformed("expected at most one Authorization header");
    check_body_length(parser);

    RequestHead head;
    head.method = method_of(fields.method());
    const std::string target(fields.target());
    const size_t mark = target.find('?');
    head.path = target.substr(0, mark);
    if (mark != std::string::npos) head.query = target.substr(mark + 1);
    head.has_content_length = fields.count(http::field::content_length) != 0;
    head.content_length = parser.content_length().value_or(0);
    head.authorization = std::string(fields[http::field::authorization]);
    head.expects_continue = expects_continue(parser);
    head.keep_alive = fields.keep_alive();
    return head;
}

Credential credential_of(const RequestHead& head) {
    constexpr std::string_view scheme = "Goblin ";
    Credential credential{};
    const std::string_view value = head.authorization;
    if (!value.starts_with(scheme) || !from_hex(value.substr(scheme.size()), credential))
        throw refused(
            401, "credential",
            "expected the header 'Authorization: Goblin' with a credential of 64 hexadecimal digits, found " +
                std::string(value.empty() ? "none" : "another") + "; join the lab by an invitation link");
    return credential;
}

uint64_t leaf_of(const RequestHead& head) {
    if (head.query.empty()) return 0;
    constexpr std::string_view name = "leaf=";
    uint64_t leaf = 0;
    const std::string_view query = head.query;
    const char* const end = query.data() + query.size();
    const bool named = query.starts_with(name) && query.size() > name.size();
    const auto parsed =
        named ? std::from_chars(query.data() + name.size(), end, leaf) : std::from_chars_result{};
    if (!named || parsed.ec != std::errc() || parsed.ptr != end)
        throw malformed("expected the query 'leaf=N', found another");
    return leaf;
}

}  // namespace goblin::lab
