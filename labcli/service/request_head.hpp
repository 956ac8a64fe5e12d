// The head of an HTTP/1.1 request, reduced to what the service looks at.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "labcli/service/contributor_door.hpp"

namespace goblin::lab {

enum class Method : uint8_t { get, head, post, put, other };

struct RequestHead {
    Method method = Method::other;
    std::string path;
    std::string query;  // after the '?', without it
    uint64_t content_length = 0;
    bool has_content_length = false;
    std::string authorization;
    bool expects_continue = false;
    bool keep_alive = true;
};

// Thrown where a request is refused; becomes the reply.
struct Refused {
    Refusal refusal;
};
Refused refused(int status, std::string code, std::string message, uint64_t retry_after_ms = 0);

// `text` ends with the empty line. Throws Refused for what is no HTTP/1.1 request, and for bodies of unsaid
// length: the service wants to know a body's size before it takes it.
RequestHead parse_head(std::span<const uint8_t> text);

// 'Goblin' and 64 hexadecimal digits. Throws Refused with status 401.
Credential credential_of(const RequestHead& head);

// N of a query 'leaf=N', 0 without a query. Throws Refused with status 400.
uint64_t leaf_of(const RequestHead& head);

}  // namespace goblin::lab
