// Writes and reads the lines of the administration socket, strictly.
#include "labcli/admin/admin_messages.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace goblin::lab {

namespace {

struct KindName {
    ErrorKind kind;
    std::string_view name;
};
constexpr std::array kind_names = {
    KindName{ErrorKind::usage, "usage"},
    KindName{ErrorKind::input, "input"},
    KindName{ErrorKind::io, "io"},
    KindName{ErrorKind::memory, "memory"},
    KindName{ErrorKind::cancelled, "cancelled"},
    KindName{ErrorKind::numeric, "numeric"},
    KindName{ErrorKind::network, "network"},
    KindName{ErrorKind::denied, "denied"},
    KindName{ErrorKind::failed, "failed"},
};
static_assert(kind_names.size() == static_cast<size_t>(ErrorKind::failed) + 1);

std::string_view name_of(ErrorKind kind) {
    const auto found = std::ranges::find(kind_names, kind, &KindName::kind);
    return found == kind_names.end() ? "failed" : found->name;
}

ErrorKind kind_of(std::string_view name) {
    const auto found = std::ranges::find(kind_names, name, &KindName::name);
    return found == kind_names.end() ? ErrorKind::failed : found->kind;
}

// Before the parser builds anything: its values are written and destroyed by functions that call themselves.
bool too_deep(std::string_view text) {
    uint64_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\')
            ++i;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && ++depth > admin_depth)
            return true;
        else if (!in_string && (c == ']' || c == '}') && depth > 0)
            --depth;
    }
    return false;
}

Json parse_line(std::string_view line, ErrorKind kind) {
    if (too_deep(line)) throw Error(kind, "expected JSON of at most {} levels, found more", admin_depth);
    Json parsed = Json::parse(line, nullptr, false);
    if (parsed.is_discarded() || !parsed.is_object())
        throw Error(kind, "expected a JSON object on one line, found something else");
    return parsed;
}

// Names from outside may be no UTF-8; then a replacement character is shown.
std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string text_in(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "unknown";
}

bool has_version(const Json& json) {
    const auto version = json.find("v");
    return version != json.end() && version->is_number_unsigned() &&
           version->get<uint64_t>() == admin_version;
}

}  // namespace

std::string call_line(std::string_view verb, const Json& args) {
    return line_of({{"v", admin_version}, {"verb", verb}, {"args", args}});
}

AdminCall parse_call(std::string_view line) {
    Json call = parse_line(line, ErrorKind::usage);
    if (!has_version(call))
        throw Error(
            ErrorKind::usage,
            "expected administration version {}, found another; use the goblin-lab of the running node",
            admin_version);
    const auto verb = call.find("verb");
    const auto args = call.find("args");
    if (call.size() != 3 || verb == call.end() || !verb->is_string() || args == call.end() ||
        !args->is_object())
        throw Error(ErrorKind::usage, "expected a call with v, verb and args alone, found something else");
    return {verb->get<std::string>(), std::make_shared<const Json>(std::move(*args))};
}

std::string result_line(const Json& result) {
    std::string line = line_of({{"v", admin_version}, {"ok", true}, {"result", result}});
    if (line.size() > admin_reply_bytes)
        return error_line(Error(ErrorKind::failed,
                                "expected an answer of at most {} bytes, found {}; ask for less",
                                admin_reply_bytes, line.size()));
    return line;
}

std::string error_line(const Error& error) {
    const Json told = {{"kind", name_of(error.kind())}, {"message", error.what()}};
    return line_of({{"v", admin_version}, {"ok", false}, {"error", told}});
}

Json parse_reply(std::string_view line) {
    Json reply = parse_line(line, ErrorKind::network);
    const auto ok = reply.find("ok");
    if (!has_version(reply) || ok == reply.end() || !ok->is_boolean())
        throw Error(ErrorKind::network,
                    "expected an answer of administration version {}, found another; use the goblin-lab of "
                    "the running node",
                    admin_version);
    if (ok->get<bool>()) {
        const auto result = reply.find("result");
        if (result != reply.end()) return std::move(*result);
    } else {
        const auto error = reply.find("error");
        if (error != reply.end() && error->is_object())
            throw Error(kind_of(text_in(*error, "kind")), text_in(*error, "message"));
    }
    throw Error(ErrorKind::network, "expected a result or an error from the lab node, found neither");
}

}  // namespace goblin::lab
