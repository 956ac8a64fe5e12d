// Asks a running lab node over its administration socket.
#include "labcli/admin/admin_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "labcli/admin/unix_address.hpp"

namespace goblin::lab {

namespace {

constexpr int look_interval_ms = 100;

Error node_gone() {
    return Error(ErrorKind::network,
                 "expected an answer from the lab node, found it gone; see its log and start it with "
                 "goblin-lab serve");
}

}  // namespace

AdminClient::AdminClient(const std::filesystem::path& socket_file) {
    const sockaddr_un address = unix_address(socket_file);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        fcntl(socket_, F_SETFL, O_NONBLOCK);
        return;
    }
    const int reason = errno;
    if (socket_ >= 0) close(socket_);
    const std::string directory = socket_file.parent_path().string();
    if (reason == EACCES || reason == EPERM)
        throw Error(ErrorKind::denied,
                    "expected the right to ask the lab node of {}, found none; ask as the user who runs it",
                    directory);
    throw Error(
        ErrorKind::network,
        "expected a running lab node for {}, found none ({}); start it with goblin-lab serve --dir {}",
        directory, strerror(reason), directory);
}

AdminClient::~AdminClient() {
    close(socket_);
}

void AdminClient::wait(short events, const std::atomic<bool>* stop) {
    while (true) {
        if (stop && *stop)
            throw Error(ErrorKind::cancelled, "expected to wait for the lab node, found the wish to stop");
        pollfd ready{socket_, events, 0};
        const int count = poll(&ready, 1, stop ? look_interval_ms : -1);
        if (count > 0) return;
        if (count < 0 && errno != EINTR) throw node_gone();
    }
}

void AdminClient::send(std::string_view text, const std::atomic<bool>* stop) {
    while (!text.empty()) {
        const ssize_t taken = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
        if (taken > 0)
            text.remove_prefix(static_cast<size_t>(taken));
        else if (errno == EAGAIN)
            wait(POLLOUT, stop);
        else if (errno != EINTR)
            throw node_gone();
    }
}

std::string AdminClient::receive_line(const std::atomic<bool>* stop) {
    std::array<char, 65536> piece;
    size_t searched = 0;
    while (true) {
        if (const size_t end = input_.find('\n', searched); end != std::string::npos) {
            std::string line = input_.substr(0, end);
            input_.erase(0, end + 1);
            return line;
        }
        searched = input_.size();
        if (searched > admin_reply_bytes)
            throw Error(ErrorKind::network, "expected an answer of at most {} bytes, found more",
                        admin_reply_bytes);
        const ssize_t taken = recv(socket_, piece.data(), piece.size(), 0);
        if (taken > 0)
            input_.append(piece.data(), static_cast<size_t>(taken));
        else if (taken < 0 && errno == EAGAIN)
            wait(POLLIN, stop);
        else if (taken == 0 || errno != EINTR)
            throw node_gone();
    }
}

Json AdminClient::call(std::string_view verb, const Json& args, const std::atomic<bool>* stop) {
    const std::string line = call_line(verb, args);
    if (line.size() > admin_call_bytes)
        throw Error(ErrorKind::usage, "expected a call of at most {} bytes, found {}", admin_call_bytes,
                    line.size());
    send(line, stop);
    return parse_reply(receive_line(stop));
}

}  // namespace goblin::lab
