// Listens, admits connections and spreads them over the I/O threads.
#include "labcli/service/https_service.hpp"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cassert>

#include "labcli/service/routes.hpp"

namespace goblin::lab {

namespace {

using asio::ip::tcp;

constexpr auto look_interval = std::chrono::milliseconds(100);
constexpr auto retry_interval = std::chrono::milliseconds(100);
constexpr uint64_t descriptors_for_others = 256;  // files, database, administration

asio::ip::address parse_address(const std::string& text) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (error)
        throw Error(ErrorKind::usage, "expected an IPv4 or IPv6 address to listen at, or *, found '{}'",
                    text);
    return address;
}

[[noreturn]] void refuse_listening(const std::string& address, uint16_t port,
                                   const boost::system::error_code& error) {
    if (error == asio::error::address_in_use)
        throw Error(ErrorKind::network,
                    "expected port {} of {} to be free, found it in use; stop the program that uses it or "
                    "choose another "
                    "port with --listen",
                    port, address);
    throw Error(ErrorKind::network,
                "expected to listen at {} port {}, found: {}; choose another address with --listen", address,
                port, error.message());
}

boost::system::error_code listen_at(tcp::acceptor& acceptor, const asio::ip::address& address, uint16_t port,
                                    bool both) {
    boost::system::error_code error;
    const tcp::endpoint endpoint(address, port);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && address.is_v6()) acceptor.set_option(asio::ip::v6_only(!both), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    return error;
}

// All addresses of both families; of IPv4 alone where the system has no IPv6.
void listen(tcp::acceptor& acceptor, const std::string& address, uint16_t port) {
    const bool all = address == "*";
    boost::system::error_code error =
        listen_at(acceptor, all ? asio::ip::address_v6::any() : parse_address(address), port, all);
    if (all &&
        (error == asio::error::address_family_not_supported || error == asio::error::no_protocol_option ||
         error == boost::system::errc::address_not_available)) {
        acceptor.close();
        error = listen_at(acceptor, asio::ip::address_v4::any(), port, false);
    }
    if (error) refuse_listening(address, port, error);
}

// Raises the process's limit on open files to what the connections need; lowers the connections to what it
// allows.
uint64_t connections_possible(uint64_t wanted) {
    struct rlimit files {};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
    const uint64_t needed = wanted + descriptors_for_others;
    if (files.rlim_cur < needed) {
        files.rlim_cur = std::min<rlim_t>(needed, files.rlim_max);
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    const uint64_t possible =
        files.rlim_cur > descriptors_for_others ? files.rlim_cur - descriptors_for_others : 1;
    return std::min(wanted, possible);
}

ServiceLimits adapted(ServiceLimits limits) {
    limits.connections_total = connections_possible(limits.connections_total);
    return limits;
}

uint64_t spare_connections(const ServiceLimits& limits) {
    return std::min<uint64_t>(16, limits.connections_total / 4);
}

Peer peer_of(const tcp::endpoint& endpoint) {
    auto address = endpoint.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    return {address.to_string(), address.is_loopback()};
}

// A peer that vanished without a word is noticed by the kernel within the protocol's time of silence.
void prepare_socket(tcp::socket& socket, uint64_t silence_ms) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    const int seconds = static_cast<int>(std::max<uint64_t>(4, silence_ms / 1000));
    const std::pair<int, int> options[] = {{TCP_KEEPIDLE, seconds / 2},
                                           {TCP_KEEPINTVL, seconds / 4},
                                           {TCP_KEEPCNT, 2},
                                           {TCP_USER_TIMEOUT, static_cast<int>(silence_ms)}};
    for (const auto& [option, value] : options)
        setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
}

}  // namespace

class HttpsService::State {
  public:
    State(const LabCertificate& certificate, ContributorDoor& door, Settings settings)
        : limits_(adapted(settings.limits)),
          log_(settings.log),
          tls_(certificate),
          admission_(limits_),
          blob_threads_(std::max<uint64_t>(1, settings.blob_threads), limits_.blob_jobs),
          parts_{door, limits_, admission_, blob_threads_, upload_turns_, log_} {
        for (uint64_t i = 0; i < std::max<uint64_t>(1, settings.io_threads); ++i)
            threads_.push_back(std::make_unique<IoThread>(look_interval, log_));
        acceptor_ = std::make_unique<tcp::acceptor>(threads_.front()->context());
        retry_ = std::make_unique<asio::steady_timer>(threads_.front()->context());
        listen(*acceptor_, settings.address, settings.port);
        port_ = acceptor_->local_endpoint().port();
        if (limits_.connections_total < settings.limits.connections_total)
            log(LogLevel::warning,
                fmt::format("the system allows {} connections, expected {}; raise its limit on open files",
                            limits_.connections_total, settings.limits.connections_total));
        accept();
        for (const auto& thread : threads_) thread->start();
    }
    ~State() { stop(); }

    void stop() {
        if (stopped_) return;
        stopped_ = true;
        threads_.front()->mailbox()->post([this] {
            boost::system::error_code ignored;
            acceptor_->close(ignored);
            retry_->cancel();
        });
        for (const auto& thread : threads_) thread->begin_stop(std::chrono::milliseconds(limits_.stop_ms));
        for (const auto& thread : threads_) thread->join();
    }

    uint16_t port() const { return port_; }
    uint64_t open_connections() const { return admission_.taken(Resource::connection); }

  private:
    void log(LogLevel level, std::string_view text) const {
        if (log_) log_(level, text);
    }

    void accept() {
        IoThread& thread = *threads_[next_thread_++ % threads_.size()];
        auto accepted = [this, &thread](boost::system::error_code error, tcp::socket socket) {
            if (error == asio::error::operation_aborted || !acceptor_->is_open()) return;
            if (error) return accept_later(error);
            try {
                admit(thread, std::move(socket));
            } catch (const std::exception& failure) {
                log(LogLevel::error, fmt::format("could not serve a connection: {}", failure.what()));
            }
            accept();
        };
        acceptor_->async_accept(thread.context(), std::move(accepted));
    }

    // Out of descriptors or memory: the others go on, and leave some.
    void accept_later(const boost::system::error_code& error) {
        log(LogLevel::warning, fmt::format("could not accept a connection: {}", error.message()));
        retry_->expires_after(retry_interval);
        retry_->async_wait([this](boost::system::error_code) {
            if (acceptor_->is_open()) accept();
        });
    }

    void admit(IoThread& thread, tcp::socket socket) {
        boost::system::error_code error;
        const tcp::endpoint remote = socket.remote_endpoint(error);
        if (error) return;
        Peer peer = peer_of(remote);
        auto share = admission_.take(Resource::connection, peer.address, 1);
        if (!share) {
            log(LogLevel::debug, fmt::format("connection of {}: refused, too many are open", peer.address));
            return;
        }
        // Connections that only lie there give way before there is no room left for others.
        if (admission_.taken(Resource::connection) + spare_connections(limits_) >= limits_.connections_total)
            thread.mailbox()->post([&thread] { thread.end_longest_idle(); });
        prepare_socket(socket, limits_.silence_ms);
        if (&thread == threads_.front().get())
            return serve(thread, std::move(socket), std::move(peer), std::move(*share));
        thread.mailbox()->post([this, &thread, socket = std::move(socket), peer = std::move(peer),
                                share = std::move(*share)]() mutable {
            serve(thread, std::move(socket), std::move(peer), std::move(share));
        });
    }

    void serve(IoThread& thread, tcp::socket socket, Peer peer, Admission::Share share) {
        auto stream = std::make_shared<HttpStream>(thread, std::move(socket), tls_, admission_, limits_,
                                                   std::move(peer));
        asio::co_spawn(thread.context(), serve_connection(std::move(stream), parts_, std::move(share)),
                       asio::detached);
    }

    const ServiceLimits limits_;
    const LogSink log_;
    TlsContext tls_;
    Admission admission_;
    UploadTurns upload_turns_;
    std::vector<std::unique_ptr<IoThread>> threads_;
    WorkPool blob_threads_;  // they read and write what travels
    ServiceParts parts_;
    std::unique_ptr<tcp::acceptor> acceptor_;
    std::unique_ptr<asio::steady_timer> retry_;
    uint16_t port_ = 0;
    uint64_t next_thread_ = 0;
    bool stopped_ = false;
};

HttpsService::HttpsService(const LabCertificate& certificate, ContributorDoor& door, Settings settings)
    : state_(std::make_unique<State>(certificate, door, std::move(settings))) {}
HttpsService::~HttpsService() = default;
uint16_t HttpsService::port() const {
    return state_->port();
}
uint64_t HttpsService::open_connections() const {
    return state_->open_connections();
}
void HttpsService::stop() {
    state_->stop();
}

}  // namespace goblin::lab
