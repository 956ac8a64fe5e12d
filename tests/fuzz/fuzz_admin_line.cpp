// Any line at the administration socket, as a call and as a reply: refused by an Error, or read to what is
// written the same.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "labcli/admin/admin_messages.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;
using namespace goblin::lab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view line(reinterpret_cast<const char*>(data), size);
    try {
        const AdminCall call = parse_call(line);
        std::string written = call_line(call.verb, *call.args);
        REQUIRE(written.back() == '\n');
        written.pop_back();
        REQUIRE(written.find('\n') == std::string::npos);
        const AdminCall again = parse_call(written);
        REQUIRE(again.verb == call.verb && *again.args == *call.args);
    } catch (const Error&) {
    }
    try {
        const Json result = parse_reply(line);
        const std::string written = result_line(result);
        REQUIRE(parse_reply(std::string_view(written).substr(0, written.size() - 1)) == result);
    } catch (const Error&) {
    }
    return 0;
}
