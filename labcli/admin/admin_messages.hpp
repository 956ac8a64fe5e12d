// What goes over the administration socket: one JSON object a line, in both directions.
//
//   {"v":1,"verb":"job.status","args":{…}}
//   {"v":1,"ok":true,"result":…}  or  {"v":1,"ok":false,"error":{"kind":"usage","message":"…"}}
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace goblin::lab {

using Json = nlohmann::json;

inline constexpr uint64_t admin_version = 1;
inline constexpr uint64_t admin_call_bytes = uint64_t{1} << 20;    // a call's line
inline constexpr uint64_t admin_reply_bytes = uint64_t{16} << 20;  // a reply's line
inline constexpr uint64_t admin_depth = 32;                        // of nested lists and objects

struct AdminCall {
    std::string verb;
    std::shared_ptr<const Json> args;  // an object
};

// Lines are without their end. Each text comes back with it.
std::string call_line(std::string_view verb, const Json& args);
// Throws ErrorKind::usage for what is no call of this version.
AdminCall parse_call(std::string_view line);

std::string result_line(const Json& result);
std::string error_line(const Error& error);
// The result. Throws the error that the reply tells, ErrorKind::network for what is no reply.
Json parse_reply(std::string_view line);

}  // namespace goblin::lab
