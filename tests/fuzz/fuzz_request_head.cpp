// Any bytes as the head of an HTTP request: refused with a status of refusal, or read to what the service can
// act on.
#include <cstdint>

#include "core/error.hpp"
#include "labcli/service/request_head.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;
using namespace goblin::lab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const RequestHead head = parse_head({data, size});
        REQUIRE(head.has_content_length || head.content_length == 0);
        REQUIRE(head.path.size() + head.query.size() < size);
        REQUIRE(head.authorization.find('\n') == std::string::npos);
        leaf_of(head);
        credential_of(head);
    } catch (const Refused& refused) {
        REQUIRE(refused.refusal.status >= 400 && refused.refusal.status < 600);
        REQUIRE(!refused.refusal.error.code.empty() && !refused.refusal.error.message.empty());
    }
    return 0;
}
