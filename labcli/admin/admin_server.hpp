// The lab node's own door: administration over a Unix socket that only its owner and root may use.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "labcli/admin/admin_messages.hpp"
#include "labcli/log/log_sink.hpp"

namespace goblin::lab {

// A call under way. Whoever holds it last without having answered thereby answers with an error.
class AdminRequest {
  public:
    using Reply = std::function<void(std::string line)>;
    AdminRequest(AdminCall call, Reply reply) : call_(std::move(call)), reply_(std::move(reply)) {}
    ~AdminRequest();
    AdminRequest(const AdminRequest&) = delete;
    AdminRequest& operator=(const AdminRequest&) = delete;

    const std::string& verb() const { return call_.verb; }
    const Json& args() const { return *call_.args; }
    // The client has gone; nobody waits for the answer any more.
    bool cancelled() const { return cancelled_; }

    // The first one counts. From any thread.
    void succeed(const Json& result);
    void fail(const Error& error);

  private:
    friend class AdminServer;
    void answer(std::string line);

    const AdminCall call_;
    const Reply reply_;
    std::atomic<bool> cancelled_ = false;
    std::atomic<bool> answered_ = false;
};

class AdminServer {
  public:
    // Called on the server's thread, so it returns soon; the answer may come later. What it throws is the
    // answer.
    using Handler = std::function<void(std::shared_ptr<AdminRequest>)>;

    // Listens when it returns. A socket that no process listens at any more is replaced. Throws
    // ErrorKind::usage when the path is too long for a socket or another node listens there, ErrorKind::io
    // when it can't listen.
    AdminServer(const std::filesystem::path& socket_file, Handler handler, LogSink log);
    ~AdminServer();
    AdminServer(const AdminServer&) = delete;
    AdminServer& operator=(const AdminServer&) = delete;

    // Accepts nobody any more, sends the answers that come soon, removes the socket. Within two seconds.
    void stop();

  private:
    class State;
    class Connection;
    std::unique_ptr<State> state_;
};

}  // namespace goblin::lab
