// A network of a test's own: a loopback that this process and its children alone have, whose cable can be
// pulled and which can do without IPv4.
#pragma once

namespace goblin::test {

class OwnNetwork {
  public:
    // First thing in main(): leaves the system's network. False where the system doesn't allow that; then
    // nothing has changed.
    static bool prepare();
    static bool prepared();

    // Packets get nowhere, and nobody is told; connections stay open.
    static void pull_cable();
    static void plug_in();
    // From here on there is nothing but IPv6.
    static void remove_ipv4();
};

}  // namespace goblin::test
