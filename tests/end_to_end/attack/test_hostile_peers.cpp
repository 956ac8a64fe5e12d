// A lab under attack by everybody who can reach it, while two honest contributors compute product after
// product: each attack is refused or harmless, and every product comes out right.
#include <sys/resource.h>

#include <QTest>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/work/leaf_stream.hpp"
#include "core/work/plain_text.hpp"
#include "tests/end_to_end/attack/honest_work.hpp"
#include "tests/support/contributor.hpp"
#include "tests/support/wait_until.hpp"

namespace goblin::test {

namespace {

using lab::Json;
using namespace std::string_view_literals;

constexpr int depth_of_attack = 1'000'000;
constexpr uint64_t most_growth_bytes = uint64_t{48} << 20;

const std::string hostile_names[] = {
    "../../../../etc/passwd",
    "..\\..\\autoexec.bat",
    "\x1b[2J\x1b]0;owned\x07\x1b[31m",
    "<script>alert(document.cookie)</script>",
    std::string("before\0after", 12),
    "'; DROP TABLE computer; --",
    "\"quoted\" 'twice' `echo owned` $(reboot)",
    "line one\r\nline two: error   a forged line",
    "gpj.\u202eexe \u2066isolated\u2069",
    "\u009b31m C1 \u0085 \u2028 \ufeff",
    "%s%n%x {} {0}",
};

// Opens many connections; the test's own limit on files must allow them.
void allow_many_files() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

uint64_t peak_bytes(pid_t process) {
    const std::string status = text_of_file(fmt::format("/proc/{}/status", process));
    const size_t place = status.find("VmHWM:");
    return place == std::string::npos ? 0 : std::stoull(status.substr(place + 6)) << 10;
}

// A zstd frame of `size_bytes` zeros in runs of 128 KiB: four bytes each.
Bytes zeros_as_zstd(uint64_t size_bytes, uint64_t claimed_bytes) {
    Bytes frame = {0x28, 0xb5, 0x2f, 0xfd, 0xe0};  // one segment, the content's size in 8 bytes
    for (int shift = 0; shift < 64; shift += 8) frame.push_back(static_cast<uint8_t>(claimed_bytes >> shift));
    constexpr uint64_t run_bytes = uint64_t{128} << 10;
    for (uint64_t left = size_bytes; left > 0; left -= std::min(left, run_bytes)) {
        const uint64_t size = std::min(left, run_bytes);
        const uint64_t head = size << 3 | 1 << 1 | (left <= run_bytes ? 1 : 0);
        for (int shift = 0; shift < 24; shift += 8) frame.push_back(static_cast<uint8_t>(head >> shift));
        frame.push_back(0);
    }
    return frame;
}

// The same with a window of 2 GiB to be kept at hand instead of a size.
Bytes wide_window(Bytes frame) {
    frame.erase(frame.begin() + 4, frame.begin() + 13);
    const Bytes head = {0x00, 21 << 3};
    frame.insert(frame.begin() + 4, head.begin(), head.end());
    return frame;
}

Bytes as_leaf(const Bytes& frame) {
    Bytes leaf = {1};  // packed
    for (int shift = 0; shift < 32; shift += 8) leaf.push_back(static_cast<uint8_t>(frame.size() >> shift));
    leaf.insert(leaf.end(), frame.begin(), frame.end());
    return leaf;
}

}  // namespace

class TestHostilePeers : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        allow_many_files();
        lab_ = std::make_unique<LabProcess>();
        // Before anybody else is there, so that it is this one who gets the task.
        bomber_ = std::make_unique<Contributor>(*lab_, "bomber");
        bait_ = std::make_unique<ProductFiles>(lab_->files(), "bait", random_matrix(DType::f32, 600, 2, 1),
                                               random_matrix(DType::f32, 2, 600, 2));
        bait_job_ = lab_->submit_product(bait_->a(), bait_->b(), bait_->output(), {{"verify", "recompute"}},
                                         "600x600");
        bombs_target_ = bomber_->take_task();
        QVERIFY(bombs_target_);
        bomber_->tell(Contributor::commitment(*bombs_target_));
        QVERIFY(bomber_->wait_until_asked(bombs_target_->id()));
        honest_ = std::make_unique<HonestWork>(*lab_);
        honest_->begin();
        QCOMPARE(honest_->goes_on(1), std::string());
        peak_before_ = peak_bytes(lab_->pid());
    }

    // After each attack.
    void cleanup() {
        QVERIFY(lab_->running());
        QCOMPARE(honest_->goes_on(), std::string());
        const uint64_t grown_bytes = peak_bytes(lab_->pid()) - peak_before_;
        QVERIFY2(grown_bytes < most_growth_bytes, fmt::format("{} more bytes", grown_bytes).c_str());
    }

    void cbor_nested_a_million_deep_is_refused() {
        struct Nesting {
            const char* name;
            std::string_view unit;
        };
        const Nesting nestings[] = {
            {"arrays", "\x81"sv}, {"maps", "\xa1\x00"sv},          {"maps of text", "\xa1\x61x"sv},
            {"tags", "\xc0"sv},   {"indefinite arrays", "\x9f"sv}, {"chunked texts", "\x7f"sv}};
        for (const Nesting& nesting : nestings) {
            Bytes body;
            for (int i = 0; i < depth_of_attack; ++i)
                body.insert(body.end(), nesting.unit.begin(), nesting.unit.end());
            QCOMPARE(status_of("POST", "/v1/exchange", body), 400);
            body.resize(limits::small_body_bytes);
            QCOMPARE(status_of("POST", "/v1/enrol", body), 400);
        }
        // The same behind a right beginning: as the value of a field.
        Bytes message = encode_message(bomber_->request_of({}, 0));
        message.resize(message.size() - 1);
        message.insert(message.end(), depth_of_attack, 0x81);
        QCOMPARE(status_of("POST", "/v1/exchange", message), 400);
    }

    void lengths_that_are_only_claimed_take_no_memory() {
        for (const uint8_t major : {0x5b, 0x7b, 0x9b, 0xbb}) {  // bytes, text, array, map of 2^62
            Bytes body = encode_message(bomber_->request_of({}, 0));
            body.insert(body.begin() + 1, {major, 0x40, 0, 0, 0, 0, 0, 0, 0});
            QCOMPARE(status_of("POST", "/v1/exchange", body), 400);
        }
    }

    void zstd_bombs_are_refused() {
        const Digest digest = tensor_digest(bombs_target_->grant.key, bombs_target_->outputs[0]);
        const uint64_t gibibyte = uint64_t{1} << 30;
        const uint64_t leaf = std::min(leaf_size_bytes, bombs_target_->outputs[0].size_bytes());
        const std::string target = fmt::format("/v1/blobs/{}?leaf=0", digest.hex());
        const Bytes bombs[] = {
            zeros_as_zstd(gibibyte, gibibyte),  // a gibibyte in 32 kB
            zeros_as_zstd(gibibyte, leaf),      // that claims to be as long as it should be
            zeros_as_zstd(leaf, gibibyte),
            wide_window(zeros_as_zstd(gibibyte, gibibyte)),
        };
        for (const Bytes& bomb : bombs) QCOMPARE(status_of("PUT", target, as_leaf(bomb)), 400);
        QCOMPARE(bomber_->wire().leaves_arrived(digest), uint64_t{0});
        // As long as it should be: it is unpacked into its place, whatever window it asks for.
        QCOMPARE(status_of("PUT", target, as_leaf(wide_window(zeros_as_zstd(leaf, leaf)))), 202);
        QCOMPARE(bomber_->wire().leaves_arrived(digest), uint64_t{1});
    }

    void slow_heads_and_bodies_hold_nothing_up() {
        std::vector<HttpsClient> lorises;
        for (int i = 0; i < 200; ++i) {
            HttpsClient& loris = lorises.emplace_back(settings_from(i % 8));
            loris.connect();
            loris.send(i % 2 == 0
                           ? "GET /v1/lab HTTP/1.1\r\nHost: lab\r\n"
                           : "POST /v1/exchange HTTP/1.1\r\nHost: lab\r\nContent-Length: 16777216\r\n" +
                                 bomber_->wire().authorization() + "\r\n");
        }
        const uint64_t before = honest_->products();
        const auto enough = [&] { return honest_->products() >= before + 3; };
        const bool went_on = wait_until(
            [&] {
                for (HttpsClient& loris : lorises) try {
                        if (loris.connected()) loris.send("x");
                    } catch (const Error&) {
                        loris.disconnect();  // the lab has had enough
                    }
                return enough();
            },
            60'000, 100);
        QVERIFY(went_on);
    }

    void a_thousand_idle_connections_leave_room_for_others() {
        std::vector<HttpsClient> idle;
        for (int i = 0; i < 1'000; ++i) {
            HttpsClient& client = idle.emplace_back(settings_from(i / 50));
            if (i % 2 == 0)
                client.connect();
            else
                client.connect_without_tls();
        }
        QCOMPARE(honest_->goes_on(), std::string());
        Contributor newcomer(*lab_, "newcomer");
        newcomer.exchange(newcomer.request_of({}, 0));
    }

    void a_flood_of_connections_from_one_address_is_cut_at_its_limit() {
        std::vector<HttpsClient> many;
        uint64_t refused = 0;
        for (int i = 0; i < 200; ++i) try {
                HttpsClient client(settings_from(99));
                client.connect();
                many.push_back(std::move(client));
            } catch (const Error&) {
                ++refused;
            }
        QVERIFY2(many.size() <= limits::connections_per_address && refused > 0,
                 fmt::format("{} connections, {} refused", many.size(), refused).c_str());
        QCOMPARE(honest_->goes_on(), std::string());
    }

    void a_flood_of_enrolments_lets_nobody_in() {
        const size_t before = lab_->ask("node.list").size();
        const InvitationLink once = InvitationLink::parse(lab_->invite());
        std::atomic<int> refused{0}, told_to_wait{0}, let_in{0};
        std::vector<std::thread> flood;
        for (int thread = 0; thread < 4; ++thread)
            flood.emplace_back([&, thread] {
                SimulatedContributor flooder(settings_from(thread));
                for (int i = 0; i < 100; ++i) {
                    InvitationLink link = once;
                    // Every other one with a token that the lab doesn't know.
                    if (i % 2 == 0) link.token = Bytes(16, static_cast<uint8_t>(thread * 100 + i));
                    try {
                        const VolunteerIdentity identity(random_bytes<VolunteerSeed>(), link.lab_key);
                        flooder.enrol(enrolment(link, flooder.lab_info(), identity,
                                                random_bytes<FixedBytes<16>>(), "flood"));
                        ++let_in;
                    } catch (const Refused& refusal) {
                        (refusal.status == 429 ? told_to_wait : refused)++;
                    }
                }
            });
        for (std::thread& thread : flood) thread.join();
        QCOMPARE(let_in.load(), 1);  // the invitation was for one
        QVERIFY2(told_to_wait > 0 && refused > 0,
                 fmt::format("{} {}", told_to_wait.load(), refused.load()).c_str());
        QCOMPARE(lab_->ask("node.list").size(), before + 1);
        Contributor invited(*lab_, "invited");  // who has an invitation joins all the same
        invited.exchange(invited.request_of({}, 0));
    }

    void hostile_names_and_texts_are_shown_as_plain_text() {
        std::string history;
        for (const std::string& name : hostile_names) {
            Contributor contributor(*lab_, name);
            ExchangeRequest request = contributor.request_of({}, 0);
            request.state = name;
            request.want.devices[0].kind = name;
            request.want.devices[0].name = name;
            contributor.exchange(request);
            // It is at hand when the job comes, so replicas of some tasks are drawn for it.
            const ProductFiles files(lab_->files(), fmt::format("shared-{}", &name - hostile_names),
                                     random_matrix(DType::f32, 20, 2, 1),
                                     random_matrix(DType::f32, 2, 20, 2));
            const uint64_t job =
                lab_->submit_product(files.a(), files.b(), files.output(), {{"verify", "redundant"}}, "2x2");
            bool taken = false;  // not where a task is over before it is told of
            while (!taken) {
                Work* const work = contributor.take_task(5'000);
                QVERIFY2(work != nullptr, lab_->job(job).dump().c_str());
                taken = contributor.tell(Contributor::failure(*work, name)).kind == ReceiptKind::taken;
            }
            QVERIFY(lab_->wait_for_job(job)["state"] == "done");
            QCOMPARE(files.wrong_output(), std::string());
            for (const char* verb : {"status", "logs", "result"})
                expect_plain_from({"job", verb, std::to_string(job)});
        }
        for (const Json& node : lab_->ask("node.list"))
            expect_plain_from({"node", "show", std::to_string(node["id"].get<uint64_t>())});
        expect_plain_from({"node", "list"});
        expect_plain_from({"job", "list"});
        // The products that run all the while had tasks for them, too.
        for (const Json& job : lab_->ask("job.list"))
            history += text_of({"job", "logs", std::to_string(job["id"].get<uint64_t>()), "--most", "10000"});
        expect_plain(history);
        for (const char* told :
             {"failed: <script>alert", "failed: ../../", "failed: \\x1b[2J", "failed: before\\x00after"})
            QVERIFY2(history.find(told) != std::string::npos, told);
    }

    void a_name_that_is_no_utf_8_is_refused() {
        const InvitationLink link = InvitationLink::parse(lab_->invite());
        SimulatedContributor wire(lab_->client_settings());
        const VolunteerIdentity identity(random_bytes<VolunteerSeed>(), link.lab_key);
        Bytes message = encode_message(
            enrolment(link, wire.lab_info(), identity, random_bytes<FixedBytes<16>>(), "in latin-x"));
        message.back() = 0xe9;
        QCOMPARE(wire.client().request("POST", "/v1/enrol", {}, message).status, 400);
    }

    void files_with_hostile_names_are_computed_and_shown_as_plain_text() {
        const std::filesystem::path folder = lab_->files() / "a \"folder\" <b>'s \x1b[31m\nname";
        std::filesystem::create_directory(folder);
        const ProductFiles files(folder, "p\x1b[2J", random_matrix(DType::i32, 8, 4, 1),
                                 random_matrix(DType::i32, 4, 8, 2));
        const Finished ran =
            lab_->command({"product", files.a().string(), files.b().string(), "-o", files.output().string()});
        QVERIFY2(ran.exit_code == 0, ran.errors.c_str());
        expect_plain(ran.output);
        expect_plain(ran.errors);
        QCOMPARE(files.wrong_output(), std::string());
        const Finished missing =
            lab_->command({"product", (folder / "\x1b[2J").string(), files.b().string(), "-o", "x.npy"});
        QCOMPARE(missing.exit_code, 2);
        expect_plain(missing.output);
        expect_plain(missing.errors);
    }

    void nothing_was_written_but_the_labs_own_files() {
        const std::set<std::string> own = {"settings.json",  "lab.key",        "lab.crt", "lab.sqlite",
                                           "lab.sqlite-wal", "lab.sqlite-shm", "lock",    "admin.sock"};
        for (const auto& file : std::filesystem::directory_iterator(lab_->directory()))
            QVERIFY2(own.contains(file.path().filename().string()), file.path().c_str());
    }

    void cleanupTestCase() {
        if (!lab_ || !bombs_target_) return;
        bomber_->tell(Contributor::handing_back(*bombs_target_));
        const Json status = lab_->wait_for_job(bait_job_);
        QVERIFY2(status["state"] == "done", status.dump().c_str());
        QCOMPARE(bait_->wrong_output(), std::string());
        honest_->end();
        for (const Json& node : lab_->ask("node.list")) {
            if (node["name"] != "alice" && node["name"] != "bob") continue;
            QVERIFY2(node["disagreed"] == 0 && node["failed"] == 0, node.dump().c_str());
        }
        QCOMPARE(lab_->stop(), 0);
        expect_plain(lab_->log());
    }

  private:
    // As from different machines: a different address of loopback for each number.
    HttpsClient::Settings settings_from(int number) const {
        HttpsClient::Settings settings = lab_->client_settings();
        settings.from = fmt::format("127.0.1.{}", number + 1);
        return settings;
    }
    int status_of(std::string_view method, const std::string& target, const Bytes& body) {
        SimulatedContributor& wire = bomber_->wire();
        return wire.client().request(method, target, wire.authorization(), body).status;
    }
    // What a person sees.
    std::string text_of(std::vector<std::string> arguments) const {
        std::vector<std::string> all = {"--dir", lab_->directory().string()};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run_program(program("goblin-lab"), std::move(all)).output;
    }
    void expect_plain_from(const std::vector<std::string>& arguments) const {
        expect_plain(text_of(arguments));
        expect_plain(lab_->command(arguments).output);
    }
    static void expect_plain(const std::string& text) {
        std::string one_line = text;
        std::replace(one_line.begin(), one_line.end(), '\n', ' ');
        QVERIFY2(is_plain(one_line), plain_lines(text).c_str());
        QVERIFY2(
            text.find("a forged line") == std::string::npos || text.find("\nline two") == std::string::npos,
            text.c_str());
    }

    std::unique_ptr<LabProcess> lab_;
    std::unique_ptr<Contributor> bomber_;
    std::unique_ptr<ProductFiles> bait_;
    uint64_t bait_job_ = 0;
    Work* bombs_target_ = nullptr;
    std::unique_ptr<HonestWork> honest_;
    uint64_t peak_before_ = 0;
};

}  // namespace goblin::test

QTEST_GUILESS_MAIN(goblin::test::TestHostilePeers)
#include "test_hostile_peers.moc"
