// Parses and writes invitation links.
#include "core/work/link.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/work/base64url.hpp"
#include "core/work/plain_text.hpp"

namespace goblin {

namespace {

constexpr std::string_view scheme = "goblin://";
constexpr size_t longest_host = 253;  // RFC 1035
constexpr size_t token_bytes = 16;
constexpr size_t longest_shown = 80;

bool is_host_character(char c, bool in_brackets) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return alphanumeric || c == '.' || (in_brackets ? c == ':' : c == '-');
}

uint16_t parse_port(std::string_view text) {
    uint32_t port = 0;
    const bool digits = !text.empty() && text.size() <= 5 && text.front() != '0' &&
                        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits)
        for (const char c : text) port = port * 10 + static_cast<uint32_t>(c - '0');
    if (port == 0 || port > 65'535)
        throw Error(ErrorKind::usage, "expected a port from 1 to 65535, found '{}'",
                    plain_text(text, longest_shown));
    return static_cast<uint16_t>(port);
}

}  // namespace

HostPort HostPort::parse(std::string_view text, uint16_t port_if_missing) {
    HostPort parsed;
    parsed.port = port_if_missing;
    const bool bracketed = text.starts_with('[');
    const size_t end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == std::string_view::npos)
        throw Error(ErrorKind::usage, "expected ']' after an IPv6 address, found none");
    const std::string_view host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
    const bool fits =
        !host.empty() && host.size() <= longest_host &&
        std::all_of(host.begin(), host.end(), [&](char c) { return is_host_character(c, bracketed); });
    if (!fits)
        throw Error(ErrorKind::usage, "expected a host name or address (IPv6 in brackets), found '{}'",
                    plain_text(text, longest_shown));
    parsed.host = host;
    const std::string_view rest = text.substr(bracketed ? end + 1 : end);
    if (rest.empty()) return parsed;
    if (rest.front() != ':')
        throw Error(ErrorKind::usage, "expected ':PORT' after the host, found '{}'",
                    plain_text(rest, longest_shown));
    parsed.port = parse_port(rest.substr(1));
    return parsed;
}

std::string HostPort::text() const {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
}

InvitationLink InvitationLink::parse(std::string_view text) {
    const auto refuse = [](std::string_view why) {
        throw Error(ErrorKind::usage,
                    "expected an invitation link like goblin://host:port/#key.token, found {}; copy the "
                    "whole link again",
                    why);
    };
    if (text.size() > 512) refuse("one that is too long");
    if (!text.starts_with(scheme)) refuse("another kind of address");
    const std::string_view rest = text.substr(scheme.size());
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos || slash + 1 >= rest.size() || rest[slash + 1] != '#')
        refuse("no '/#' after the host");
    const HostPort place = HostPort::parse(rest.substr(0, slash), default_port);
    const std::string_view fragment = rest.substr(slash + 2);
    const size_t dot = fragment.find('.');
    if (dot == std::string_view::npos) refuse("no '.' between key and token");
    const auto key = from_base64url(fragment.substr(0, dot));
    const auto token = from_base64url(fragment.substr(dot + 1));
    InvitationLink link;
    if (!key || key->size() != link.lab_key.bytes.size()) refuse("a damaged key");
    if (!token || token->size() != token_bytes) refuse("a damaged token");
    link.host = place.host;
    link.port = place.port;
    std::copy(key->begin(), key->end(), link.lab_key.bytes.begin());
    link.token = *token;
    return link;
}

std::string InvitationLink::text() const {
    return fmt::format("{}{}/#{}.{}", scheme, HostPort{host, port}.text(), to_base64url(lab_key.bytes),
                       to_base64url(token));
}

}  // namespace goblin
