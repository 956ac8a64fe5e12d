// The address of a Unix socket, from its path.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace goblin::lab {

// Throws ErrorKind::usage when the path is longer than the system allows.
inline sockaddr_un unix_address(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& text = path.native();
    if (text.size() >= sizeof address.sun_path)
        throw Error(ErrorKind::usage,
                    "expected a path of at most {} bytes for the administration socket, found {} in {}; "
                    "choose a lab directory "
                    "with a shorter path",
                    sizeof address.sun_path - 1, text.size(), text);
    std::memcpy(address.sun_path, text.data(), text.size());
    return address;
}

}  // namespace goblin::lab
