// The administration socket: calls and answers, errors, clients that vanish, sockets that are stale, live or
// too long.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <QTemporaryDir>
#include <QTest>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "labcli/admin/admin_client.hpp"
#include "labcli/admin/admin_server.hpp"
#include "labcli/admin/unix_address.hpp"

namespace goblin::lab {

namespace {

using namespace std::chrono_literals;

// A connection that may break the rules.
class RawClient {
  public:
    explicit RawClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const sockaddr_un address = unix_address(path);
        if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            throw Error(ErrorKind::network, "no connection");
    }
    ~RawClient() { close(socket_); }
    void send(const std::string& text) {
        for (size_t sent = 0; sent < text.size();) {
            const ssize_t taken = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
            if (taken < 0) return;
            sent += static_cast<size_t>(taken);
        }
    }
    // Until a line's end or the peer's close.
    std::string receive_line() {
        std::string line;
        char c = 0;
        while (recv(socket_, &c, 1, 0) == 1 && c != '\n') line.push_back(c);
        return line;
    }

  private:
    int socket_;
};

ErrorKind kind_thrown(const std::function<void()>& action, std::string* message = nullptr) {
    try {
        action();
    } catch (const Error& error) {
        if (message) *message = error.what();
        return error.kind();
    }
    throw std::runtime_error("nothing was thrown");
}

}  // namespace

class TestAdmin : public QObject {
    Q_OBJECT

    QTemporaryDir directory_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<AdminRequest>> kept_;  // calls that wait, guarded by mutex_
    std::unique_ptr<AdminServer> server_;

    std::string path() const { return directory_.filePath("admin.sock").toStdString(); }
    size_t kept() {
        const std::lock_guard lock(mutex_);
        return kept_.size();
    }
    void handle(std::shared_ptr<AdminRequest> request) {
        if (request->verb() == "echo") return request->succeed(request->args());
        if (request->verb() == "refuse")
            throw Error(ErrorKind::denied, "expected another, found '{}'", "this");
        if (request->verb() == "break") throw std::runtime_error("a fault");
        if (request->verb() == "later") {
            std::thread([request] {
                std::this_thread::sleep_for(20ms);
                request->succeed({{"later", true}});
            }).detach();
        }
        if (request->verb() == "wait") {
            const std::lock_guard lock(mutex_);
            kept_.push_back(std::move(request));
        }
    }

  private slots:
    void init() {
        server_ = std::make_unique<AdminServer>(
            path(), [this](auto request) { handle(std::move(request)); }, nullptr);
    }
    void cleanup() {
        kept_.clear();
        server_.reset();
    }

    void a_call_gets_the_handlers_result_many_times_over_one_connection() {
        AdminClient client(path());
        for (int i = 0; i < 100; ++i) {
            const Json args = {{"number", i}, {"text", "ü\"\\\n<script>"}, {"list", {1, 2.5, nullptr}}};
            QVERIFY(client.call("echo", args) == args);
        }
    }

    void an_answer_may_come_later_from_another_thread() {
        QVERIFY(AdminClient(path()).call("later", Json::object()) == Json({{"later", true}}));
    }

    void errors_arrive_with_their_kind_and_words() {
        AdminClient client(path());
        std::string message;
        QVERIFY(kind_thrown([&] { client.call("refuse", Json::object()); }, &message) == ErrorKind::denied);
        QCOMPARE(message, std::string("expected another, found 'this'"));
        QVERIFY(kind_thrown([&] { client.call("break", Json::object()); }) == ErrorKind::failed);
        // A handler that forgets its request has answered, too.
        QVERIFY(kind_thrown([&] { client.call("forget", Json::object()); }) == ErrorKind::failed);
        QVERIFY(client.call("echo", Json::object()) == Json::object());
    }

    void a_line_that_is_no_call_is_refused_and_the_next_one_served() {
        RawClient client(path());
        const std::string refused = R"({"error":{"kind":"usage",)";
        for (const std::string& line :
             {std::string("{"), std::string("[1]"), std::string("{\"v\":2,\"verb\":\"echo\",\"args\":{}}"),
              std::string("{\"v\":1,\"verb\":\"echo\"}"), std::string("{\"v\":1,\"verb\":7,\"args\":{}}"),
              std::string("{\"v\":1,\"verb\":\"echo\",\"args\":{},\"more\":1}"), std::string("\xff\xfe"),
              std::string("{\"v\":1,\"verb\":\"echo\",\"args\":{\"deep\":") + std::string(300'000, '[')}) {
            client.send(line + "\n");
            QVERIFY2(client.receive_line().starts_with(refused), line.substr(0, 60).c_str());
        }
        client.send(
            "{\"v\":1,\"verb\":\"echo\",\"args\":{\"brackets\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}}"
            "\n");
        QVERIFY(client.receive_line().find("\"ok\":true") != std::string::npos);
    }

    void a_line_over_a_mebibyte_is_refused_and_the_connection_closed() {
        RawClient client(path());
        client.send(std::string(admin_call_bytes + 1, ' '));
        QVERIFY(client.receive_line().find("expected a line of at most") != std::string::npos);
        QCOMPARE(client.receive_line(), std::string());
    }

    void a_client_that_vanishes_cancels_its_call() {
        {
            RawClient client(path());
            client.send(R"({"v":1,"verb":"wait","args":{}})"
                        "\n");
            QTRY_COMPARE(kept(), size_t{1});
            QVERIFY(!kept_[0]->cancelled());
        }
        QTRY_VERIFY(kept_[0]->cancelled());
        kept_[0]->succeed(1);  // too late, and harmless
    }

    void a_call_can_be_given_up() {
        std::atomic<bool> stop = false;
        AdminClient client(path());
        std::thread stopper([&] {
            while (kept() == 0) std::this_thread::sleep_for(1ms);
            stop = true;
        });
        const ErrorKind kind = kind_thrown([&] { client.call("wait", Json::object(), &stop); });
        stopper.join();
        QVERIFY(kind == ErrorKind::cancelled);
    }

    void a_node_that_stops_answers_what_is_ready_and_lets_nobody_hang() {
        AdminClient client(path());
        std::thread stopper([&] {
            while (kept() == 0) std::this_thread::sleep_for(1ms);
            std::thread late([&] {
                std::this_thread::sleep_for(50ms);
                kept_[0]->succeed("ready");
            });
            server_->stop();
            late.join();
        });
        const Json answer = client.call("wait", Json::object());
        stopper.join();
        QVERIFY(answer == Json("ready"));
        QVERIFY(kind_thrown([&] { client.call("echo", Json::object()); }) == ErrorKind::network);
        QVERIFY(!std::filesystem::exists(path()));
    }

    void a_socket_belongs_to_its_owner_alone() {
        struct stat status {};
        QCOMPARE(stat(path().c_str(), &status), 0);
        QCOMPARE(status.st_mode & 0777, mode_t{0600});
    }

    void another_user_is_hung_up_on_even_if_the_files_mode_lets_it_in() {
        if (geteuid() != 0) return;  // only root can become another user
        QCOMPARE(chmod(path().c_str(), 0666), 0);
        QCOMPARE(chmod(directory_.path().toStdString().c_str(), 0711), 0);
        std::string answer = "none";
        std::thread([&] {
            // Of this thread alone: the C library's setresuid() would change the whole process.
            syscall(SYS_setresuid, 65'534, 65'534, 65'534);
            RawClient client(path());
            client.send(R"({"v":1,"verb":"echo","args":{}})"
                        "\n");
            answer = client.receive_line();
        }).join();
        QCOMPARE(answer, std::string());
    }

    void a_live_nodes_socket_is_refused_and_a_dead_ones_replaced() {
        const auto serve_again = [&] {
            AdminServer(
                path(), [](auto) {}, nullptr);
        };
        QVERIFY(kind_thrown(serve_again) == ErrorKind::usage);
        QVERIFY(AdminClient(path()).call("echo", Json::object()) == Json::object());

        const std::string stale = directory_.filePath("stale.sock").toStdString();
        const sockaddr_un address = unix_address(stale);
        const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
        QCOMPARE(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        close(dead);
        const AdminServer replaced(
            stale, [](std::shared_ptr<AdminRequest> request) { request->succeed(1); }, nullptr);
        QVERIFY(AdminClient(stale).call("any", Json::object()) == Json(1));
    }

    void a_file_in_the_sockets_place_is_left_alone() {
        const std::string file = directory_.filePath("file").toStdString();
        close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
        QVERIFY(kind_thrown([&] {
                    AdminServer(
                        file, [](auto) {}, nullptr);
                }) == ErrorKind::io);
        QVERIFY(std::filesystem::exists(file));
    }

    void a_path_too_long_for_a_socket_and_a_missing_node_are_explained() {
        const std::string longer = "/tmp/" + std::string(120, 'x') + "/admin.sock";
        std::string message;
        QVERIFY(kind_thrown(
                    [&] {
                        AdminServer(
                            longer, [](auto) {}, nullptr);
                    },
                    &message) == ErrorKind::usage);
        QVERIFY(message.find("shorter path") != std::string::npos);
        QVERIFY(kind_thrown([&] { AdminClient("/nonexistent/admin.sock"); }, &message) == ErrorKind::network);
        QVERIFY(message.find("start it with goblin-lab serve --dir /nonexistent") != std::string::npos);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestAdmin)
#include "test_admin.moc"
