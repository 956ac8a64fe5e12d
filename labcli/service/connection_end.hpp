// Thrown inside a connection's coroutine when there is nobody to talk to any more; never leaves it.
#pragma once

#include <string>

namespace goblin::lab {

struct ConnectionEnd {
    std::string reason;
};

}  // namespace goblin::lab
