// Listens at the administration socket and serves its connections on one thread.
#include "labcli/admin/admin_server.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cassert>
#include <cerrno>
#include <exception>
#include <optional>

#include "labcli/admin/unix_address.hpp"
#include "labcli/service/connection_end.hpp"
#include "labcli/service/io_thread.hpp"
#include "labcli/service/pending.hpp"

namespace goblin::lab {

namespace {

using Local = asio::local::stream_protocol;

constexpr auto look_interval = std::chrono::milliseconds(500);
constexpr auto accept_interval = std::chrono::milliseconds(100);
constexpr auto line_time = std::chrono::seconds(10);   // for the rest of a line, once it has begun
constexpr auto reply_time = std::chrono::seconds(60);  // for the client to take a reply
constexpr auto stop_time = std::chrono::milliseconds(1'500);
constexpr uint64_t most_connections = 256;
constexpr size_t piece_bytes = size_t{16} << 10;

struct Descriptor {
    int number = -1;
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    int release() { return std::exchange(number, -1); }
};

// Removes what a node that was killed left behind, and nothing else.
void remove_stale(const std::filesystem::path& path, const sockaddr_un& address) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return;
    if (!S_ISSOCK(status.st_mode))
        throw Error(ErrorKind::io,
                    "expected the administration socket or nothing at {}, found a file; remove it",
                    path.string());
    const Descriptor probe{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connect(probe.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        throw Error(ErrorKind::usage,
                    "expected no lab node for {}, found one running; stop it or choose another directory",
                    path.parent_path().string());
    if (errno == ECONNREFUSED) unlink(path.c_str());
}

int listen_at(const std::filesystem::path& path) {
    const sockaddr_un address = unix_address(path);
    remove_stale(path, address);
    Descriptor made{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    // The mode before bind() is the file's mode from its first moment.
    const bool listening =
        made.number >= 0 && fchmod(made.number, 0600) == 0 &&
        bind(made.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        listen(made.number, SOMAXCONN) == 0;
    if (!listening)
        throw Error(ErrorKind::io, "expected to listen at {}, found: {}", path.string(), strerror(errno));
    return made.release();
}

bool may_ask(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace

AdminRequest::~AdminRequest() {
    if (!answered_)
        fail(Error(ErrorKind::failed,
                   "expected an answer from the lab node, found none; its log may say why"));
}

void AdminRequest::answer(std::string line) {
    if (!answered_.exchange(true)) reply_(std::move(line));
}

void AdminRequest::succeed(const Json& result) {
    answer(result_line(result));
}

void AdminRequest::fail(const Error& error) {
    answer(error_line(error));
}

class AdminServer::Connection final : public Watched, public std::enable_shared_from_this<Connection> {
  public:
    Connection(IoThread& thread, Local::socket socket, const Handler& handler)
        : thread_(thread), socket_(std::move(socket)), handler_(handler), wake_(thread.context()) {
        socket_.native_non_blocking(true);
        thread_.add(*this);
    }
    ~Connection() override { thread_.remove(*this); }

    // Returns when the client has gone or broke the rules.
    asio::awaitable<void> serve() {
        while (std::optional<std::string> line = co_await read_line()) {
            std::string reply;
            if (line->size() > admin_call_bytes) {
                reply = error_line(Error(ErrorKind::usage, "expected a line of at most {} bytes, found more",
                                         admin_call_bytes));
                ends_ = true;
            } else {
                reply = co_await answer(*line);
            }
            co_await write(reply);
            if (ends_) co_return;
        }
    }

    void look(Clock::time_point now) override {
        if (now >= deadline_) end_now();
    }
    void wind_down() override {
        ends_ = true;
        if (idle_since_) end_now();
    }
    std::optional<Clock::time_point> idle_since() const override { return idle_since_; }
    void end_now() override {
        over_ = true;
        boost::system::error_code ignored;
        socket_.cancel(ignored);
        wake_.notify();
    }

  private:
    asio::awaitable<void> wait(Local::socket::wait_type what) {
        boost::system::error_code error;
        if (over_) throw ConnectionEnd{"stopped"};
        co_await socket_.async_wait(what, asio::redirect_error(asio::use_awaitable, error));
        if (over_ || error) throw ConnectionEnd{"stopped"};
    }

    // Without its end; longer than allowed when it never came. Nothing when the client has hung up.
    asio::awaitable<std::optional<std::string>> read_line() {
        std::array<char, piece_bytes> piece;
        size_t searched = 0;
        while (true) {
            if (const size_t end = input_.find('\n', searched); end != std::string::npos) {
                std::string line = input_.substr(0, end);
                input_.erase(0, end + 1);
                deadline_ = Clock::time_point::max();
                co_return std::optional<std::string>(std::move(line));
            }
            searched = input_.size();
            if (searched > admin_call_bytes) co_return std::optional<std::string>(std::move(input_));
            idle_since_.reset();
            if (input_.empty()) idle_since_ = Clock::now();
            if (searched == 0)
                deadline_ = Clock::time_point::max();
            else if (deadline_ == Clock::time_point::max())
                deadline_ = Clock::now() + line_time;
            co_await wait(Local::socket::wait_read);
            const ssize_t taken = recv(socket_.native_handle(), piece.data(), piece.size(), MSG_DONTWAIT);
            if (taken == 0) co_return std::nullopt;
            if (taken > 0)
                input_.append(piece.data(), static_cast<size_t>(taken));
            else if (errno != EAGAIN && errno != EINTR)
                throw ConnectionEnd{strerror(errno)};
        }
    }

    asio::awaitable<std::string> answer(std::string_view line) {
        idle_since_.reset();
        Pending<std::string> pending(wake_, thread_.mailbox());
        std::shared_ptr<AdminRequest> request;
        try {
            request = std::make_shared<AdminRequest>(parse_call(line), pending.receiver());
            handler_(request);
        } catch (const Error& error) {
            if (!request) co_return error_line(error);
            request->fail(error);
        } catch (const std::exception& error) {
            if (!request) co_return error_line(Error(ErrorKind::failed, error.what()));
            request->fail(Error(ErrorKind::failed, error.what()));
        }
        const std::weak_ptr<AdminRequest> watched = request;
        request.reset();
        while (!pending.ready()) {
            watch();
            co_await wake_.wait();
            if (!over_ && !peer_gone_) continue;
            if (const auto waiting = watched.lock()) waiting->cancelled_ = true;
            throw ConnectionEnd{"the client has gone"};
        }
        co_return pending.take();
    }

    // Notices a client that hangs up while its call is answered.
    void watch() {
        if (watching_) return;
        watching_ = true;
        socket_.async_wait(Local::socket::wait_read, [weak = weak_from_this()](boost::system::error_code) {
            const auto self = weak.lock();
            if (!self) return;
            self->watching_ = false;
            char byte = 0;
            const ssize_t there = recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
            self->peer_gone_ = there == 0 || (there < 0 && errno != EAGAIN && errno != EINTR);
            if (self->peer_gone_) self->wake_.notify();
        });
    }

    asio::awaitable<void> write(std::string_view text) {
        while (!text.empty()) {
            const ssize_t taken =
                send(socket_.native_handle(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (taken > 0) {
                text.remove_prefix(static_cast<size_t>(taken));
                continue;
            }
            if (errno != EAGAIN && errno != EINTR) throw ConnectionEnd{strerror(errno)};
            deadline_ = Clock::now() + reply_time;
            co_await wait(Local::socket::wait_write);
        }
        deadline_ = Clock::time_point::max();
    }

    IoThread& thread_;
    Local::socket socket_;
    const Handler& handler_;
    Wake wake_;
    std::string input_;  // arrived and not yet used, at most a line and a piece
    Clock::time_point deadline_ = Clock::time_point::max();
    std::optional<Clock::time_point> idle_since_;
    bool ends_ = false;  // after the call at hand
    bool over_ = false;  // now
    bool watching_ = false;
    bool peer_gone_ = false;
};

class AdminServer::State {
  public:
    State(const std::filesystem::path& socket_file, Handler handler, LogSink log)
        : path_(socket_file),
          handler_(std::move(handler)),
          log_(std::move(log)),
          thread_(look_interval, log_),
          acceptor_(thread_.context()),
          retry_(thread_.context()) {
        acceptor_.assign(Local(), listen_at(path_));
        accept();
        thread_.start();
    }
    ~State() { stop(); }

    void stop() {
        if (stopped_) return;
        stopped_ = true;
        unlink(path_.c_str());
        thread_.mailbox()->post([this] {
            boost::system::error_code ignored;
            acceptor_.close(ignored);
            retry_.cancel();
        });
        thread_.begin_stop(stop_time);
        thread_.join();
    }

  private:
    void accept() {
        acceptor_.async_accept([this](boost::system::error_code error, Local::socket socket) {
            if (!acceptor_.is_open()) return;
            if (error) return accept_later(error.message());
            try {
                admit(std::move(socket));
            } catch (const std::exception& failure) {
                return accept_later(failure.what());
            }
            accept();
        });
    }

    void accept_later(std::string_view reason) {
        if (log_)
            log_(LogLevel::warning, fmt::format("administration: could not accept a connection: {}", reason));
        retry_.expires_after(accept_interval);
        retry_.async_wait([this](boost::system::error_code) {
            if (acceptor_.is_open()) accept();
        });
    }

    void admit(Local::socket socket) {
        if (!may_ask(socket.native_handle()) || connections_ >= most_connections) {
            if (log_)
                log_(LogLevel::warning,
                     "administration: refused a connection of another user, or one too many");
            return;
        }
        ++connections_;
        auto connection = std::make_shared<Connection>(thread_, std::move(socket), handler_);
        asio::co_spawn(thread_.context(), serve(std::move(connection)), asio::detached);
    }

    asio::awaitable<void> serve(std::shared_ptr<Connection> connection) {
        try {
            co_await connection->serve();
        } catch (const ConnectionEnd&) {
        } catch (const std::exception& error) {
            if (log_) log_(LogLevel::error, fmt::format("administration: {}", error.what()));
        }
        --connections_;
    }

    const std::filesystem::path path_;
    const Handler handler_;
    const LogSink log_;
    IoThread thread_;
    Local::acceptor acceptor_;
    asio::steady_timer retry_;
    uint64_t connections_ = 0;
    bool stopped_ = false;
};

AdminServer::AdminServer(const std::filesystem::path& socket_file, Handler handler, LogSink log)
    : state_(std::make_unique<State>(socket_file, std::move(handler), std::move(log))) {}
AdminServer::~AdminServer() = default;
void AdminServer::stop() {
    state_->stop();
}

}  // namespace goblin::lab
