// The commands' side of the administration socket.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

#include "labcli/admin/admin_messages.hpp"

namespace goblin::lab {

class AdminClient {
  public:
    // Throws ErrorKind::network when no lab node listens, ErrorKind::denied when this user may not ask it.
    explicit AdminClient(const std::filesystem::path& socket_file);
    ~AdminClient();
    AdminClient(const AdminClient&) = delete;
    AdminClient& operator=(const AdminClient&) = delete;

    // Waits as long as the node takes. Throws the node's error, ErrorKind::network when the node ends
    // meanwhile, and ErrorKind::cancelled soon after `stop` became true; no further call is possible then.
    Json call(std::string_view verb, const Json& args, const std::atomic<bool>* stop = nullptr);

  private:
    void send(std::string_view text, const std::atomic<bool>* stop);
    std::string receive_line(const std::atomic<bool>* stop);
    void wait(short events, const std::atomic<bool>* stop);

    int socket_ = -1;
    std::string input_;
};

}  // namespace goblin::lab
