// Any text as an invitation link or an address: refused by an Error, or read to what is written the same.
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "core/work/link.hpp"
#include "tests/fuzz/require.hpp"

using namespace goblin;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const InvitationLink link = InvitationLink::parse(text);
        REQUIRE(InvitationLink::parse(link.text()) == link);
    } catch (const Error&) {
    }
    try {
        const HostPort address = HostPort::parse(text, default_port);
        const HostPort again = HostPort::parse(address.text(), 1);
        REQUIRE(again.host == address.host && again.port == address.port);
    } catch (const Error&) {
    }
    return 0;
}
