// Blobs over the HTTPS service: whole, from a leaf on, interrupted, resumed, and everything that is no leaf
// stream.
#include <QTest>
#include <random>

#include "tests/unit/labcli/fake_door.hpp"

namespace goblin::lab {

namespace {

BytesOfBlob random_blob(uint64_t size_bytes) {
    BytesOfBlob bytes(size_bytes);
    std::mt19937_64 random(size_bytes);
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes.size(); i += sizeof(uint64_t)) {
        const uint64_t number = random();
        std::memcpy(bytes.data() + i, &number, sizeof number);
    }
    return bytes;
}

BytesOfBlob regular_blob(uint64_t size_bytes) {
    BytesOfBlob bytes(size_bytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / 1000);
    return bytes;
}

Digest name_of(uint8_t number) {
    Digest digest;
    digest.bytes.fill(number);
    return digest;
}

Bytes raw_leaf(std::span<const std::byte> leaf) {
    Bytes stream;
    append_leaf(stream, leaf, false);
    return stream;
}

constexpr uint64_t mebibyte = leaf_size_bytes;

}  // namespace

class TestServiceBlobs : public QObject {
    Q_OBJECT

    LabAtTest lab_;
    const BytesOfBlob random_ = random_blob(5 * mebibyte + 12'345);
    const BytesOfBlob regular_ = regular_blob(3 * mebibyte + 1);
    uint8_t next_name_ = 100;

    int status_of(std::string_view method, const std::string& target, std::span<const uint8_t> body = {}) {
        auto contributor = lab_.contributor();
        return contributor.client().request(method, target, contributor.authorization(), body).status;
    }
    // A new upload of that size which the lab waits for.
    struct Expected {
        Digest digest;
        FakeUpload& upload;
        // Only when it is finished are the bytes there to be read.
        bool took(std::span<const std::byte> blob) const {
            return upload.finished && std::ranges::equal(upload.bytes, blob);
        }
    };
    Expected expect_upload(uint64_t size_bytes) {
        const Digest digest = name_of(next_name_++);
        return {digest, lab_.door.expect_upload(digest, size_bytes)};
    }
    static std::string path(const Digest& digest, uint64_t leaf) {
        return "/v1/blobs/" + digest.hex() + "?leaf=" + std::to_string(leaf);
    }

  private slots:
    void initTestCase() {
        lab_.door.blobs[name_of(1)] = random_;
        lab_.door.blobs[name_of(2)] = regular_;
        lab_.door.blobs[name_of(3)] = {};
        lab_.start();
    }

    void a_blob_arrives_whole_and_from_any_leaf_on() {
        auto contributor = lab_.contributor();
        for (const auto& [digest, blob] : lab_.door.blobs)
            for (uint64_t first = 0; first < leaf_count(blob.size()); ++first) {
                const BytesOfBlob got = contributor.get_blob(digest, blob.size(), first);
                QVERIFY(std::ranges::equal(got, std::span(blob).subspan(first * mebibyte)));
            }
        QVERIFY(contributor.client().connected());
    }

    void regular_numbers_travel_packed_and_random_ones_raw() {
        auto contributor = lab_.contributor();
        const auto stream_bytes = [&](uint8_t name) {
            return contributor.client()
                .request("GET", path(name_of(name), 0), contributor.authorization())
                .body.size();
        };
        QCOMPARE(stream_bytes(1), random_.size() + 5 * leaf_count(random_.size()));
        QVERIFY(stream_bytes(2) < regular_.size() / 10);
    }

    void an_unknown_blob_and_leaves_that_are_none_are_refused() {
        QCOMPARE(status_of("GET", path(name_of(9), 0)), 404);
        QCOMPARE(status_of("GET", path(name_of(1), 6)), 409);
        QCOMPARE(status_of("GET", path(name_of(1), UINT64_MAX)), 409);
        for (const char* query :
             {"?leaf=", "?leaf=-1", "?leaf=1x", "?leaf=18446744073709551616", "?start=1", "?leaf=1&leaf=2"})
            QCOMPARE(status_of("GET", "/v1/blobs/" + name_of(1).hex() + query), 400);
        QCOMPARE(status_of("GET", "/v1/blobs/" + name_of(1).hex() + "00"), 404);
    }

    void a_blob_that_cannot_be_read_is_refused_and_one_that_breaks_off_is_not_taken_for_whole() {
        LabAtTest lab;
        lab.door.blobs[name_of(1)] = random_;
        lab.door.source_fails_at = 3;
        lab.start();
        auto contributor = lab.contributor();
        const auto broken =
            contributor.client().request("GET", path(name_of(1), 3), contributor.authorization());
        QCOMPARE(broken.status, 500);
        QVERIFY_THROWS_EXCEPTION(Error, contributor.get_blob(name_of(1), random_.size()));
    }

    void a_reader_that_stops_reading_holds_back_what_is_read_ahead() {
        LabAtTest lab;
        lab.door.blobs[name_of(1)] = random_blob(64 * mebibyte);
        std::atomic<uint64_t>& furthest = lab.door.leaves_read;
        lab.start();
        auto settings = lab.client_settings();
        settings.receive_buffer_bytes = 64 << 10;
        auto contributor = lab.contributor(settings);
        contributor.client().connect();
        contributor.client().send("GET " + path(name_of(1), 0) + " HTTP/1.1\r\nHost: lab\r\n" +
                                  contributor.authorization() + "\r\n");
        QTRY_VERIFY(furthest >= 2);
        QTest::qWait(200);
        // What the two sockets hold (4 MiB at most here) and two leaves.
        QVERIFY2(furthest <= 8, std::to_string(furthest).c_str());
    }

    void an_upload_arrives_raw_and_packed() {
        auto contributor = lab_.contributor();
        for (const BytesOfBlob& blob : {random_, regular_, BytesOfBlob{}}) {
            const Expected expected = expect_upload(blob.size());
            QCOMPARE(contributor.leaves_arrived(expected.digest), uint64_t{0});
            QCOMPARE(contributor.put_blob(expected.digest, blob), 204);
            QVERIFY(expected.took(blob));
            QCOMPARE(contributor.leaves_arrived(expected.digest), leaf_count(blob.size()));
        }
        QVERIFY(contributor.client().connected());
    }

    void an_interrupted_upload_keeps_its_whole_leaves_and_goes_on_from_there() {
        auto contributor = lab_.contributor();
        const Expected expected = expect_upload(random_.size());
        Bytes stream;
        for (uint64_t i = 0; i < 3; ++i)
            append_leaf(stream, std::span(random_).subspan(i * mebibyte, mebibyte), false);
        stream.resize(stream.size() - mebibyte / 2);
        contributor.client().connect();
        contributor.client().send("PUT " + path(expected.digest, 0) + " HTTP/1.1\r\nHost: lab\r\n" +
                                  contributor.authorization() +
                                  "Content-Length: " + std::to_string(random_.size()) + "\r\n\r\n");
        contributor.client().send(stream);
        contributor.client().disconnect();
        QTRY_COMPARE(contributor.leaves_arrived(expected.digest), uint64_t{2});
        QVERIFY(!expected.upload.finished);
        QCOMPARE(contributor.put_blob(expected.digest, random_, 2), 204);
        QVERIFY(expected.took(random_));
    }

    void an_upload_in_several_requests_is_told_how_far_it_is() {
        auto contributor = lab_.contributor();
        const Expected expected = expect_upload(2 * mebibyte);
        const std::span<const std::byte> blob = std::span(random_).first(2 * mebibyte);
        const auto first = contributor.client().request(
            "PUT", path(expected.digest, 0), contributor.authorization(), raw_leaf(blob.first(mebibyte)));
        QCOMPARE(first.status, 202);
        QCOMPARE(first.header("goblin-leaves"), std::string("1"));
        QCOMPARE(contributor.put_blob(expected.digest, blob, 1), 204);
    }

    void an_upload_from_a_wrong_leaf_is_told_the_right_one() {
        auto contributor = lab_.contributor();
        const Expected expected = expect_upload(2 * mebibyte);
        const auto reply =
            contributor.client().request("PUT", path(expected.digest, 1), contributor.authorization(),
                                         raw_leaf(std::span(random_).first(mebibyte)));
        QCOMPARE(reply.status, 409);
        QCOMPARE(decode_message<ErrorReply>(reply.body).code, std::string("leaf"));
        QCOMPARE(reply.header("goblin-leaves"), std::string("0"));
    }

    void a_complete_upload_can_be_finished_again_without_bytes() {
        const Expected expected = expect_upload(mebibyte);
        expected.upload.held = 1;
        QCOMPARE(status_of("PUT", path(expected.digest, 1)), 204);
        QVERIFY(expected.upload.finished);
    }

    void a_blob_that_nobody_asked_for_or_that_is_too_long_is_refused_before_its_bytes_arrive() {
        auto contributor = lab_.contributor();
        const Expected expected = expect_upload(mebibyte);
        const auto refused = [&](const Digest& name, const char* length) {
            contributor.client().connect();
            contributor.client().send("PUT " + path(name, 0) + " HTTP/1.1\r\nHost: lab\r\n" +
                                      contributor.authorization() + "Content-Length: " + length + "\r\n\r\n");
            return contributor.client().receive().status;
        };
        QCOMPARE(refused(name_of(9), "10"), 403);
        QCOMPARE(refused(expected.digest, "1048582"), 413);
        QCOMPARE(refused(expected.digest, "18446744073709551615"), 413);
    }

    void bytes_that_are_no_leaf_stream_are_refused() {
        const Expected expected = expect_upload(2 * mebibyte);
        Bytes bomb;
        append_leaf(bomb, BytesOfBlob(mebibyte), true);  // a mebibyte of zeros in a few bytes
        Bytes longer = bomb;                             // that claims to be a leaf twice as long
        const BytesOfBlob zeros(mebibyte / 2);
        Bytes shorter;
        append_leaf(shorter, zeros, true);
        const Expected small = expect_upload(mebibyte / 2);
        QCOMPARE(status_of("PUT", path(small.digest, 0), longer), 400);
        QCOMPARE(status_of("PUT", path(expected.digest, 0), shorter), 400);
        QCOMPARE(status_of("PUT", path(expected.digest, 0), Bytes{2, 1, 0, 0, 0, 7}), 400);  // no such codec
        QCOMPARE(status_of("PUT", path(expected.digest, 0), Bytes{1, 3, 0, 0, 0, 1, 2, 3}), 400);  // no zstd
        QCOMPARE(status_of("PUT", path(expected.digest, 0), Bytes{1, 0xff, 0xff, 0xff, 0xff}),
                 400);                                                                       // 4 GiB packed
        QCOMPARE(status_of("PUT", path(expected.digest, 0), Bytes{0, 1, 0, 0, 0, 1}), 400);  // too short
        QCOMPARE(expected.upload.held.load(), uint64_t{0});
    }

    void a_newer_upload_of_a_blob_takes_over_from_an_older_one() {
        auto older = lab_.contributor();
        auto newer = lab_.contributor();
        const Expected expected = expect_upload(random_.size());
        older.client().connect();
        older.client().send("PUT " + path(expected.digest, 0) + " HTTP/1.1\r\nHost: lab\r\n" +
                            older.authorization() + "Content-Length: " + std::to_string(random_.size()) +
                            "\r\n\r\n");
        older.client().send(raw_leaf(std::span(random_).first(mebibyte)));
        QTRY_COMPARE(newer.leaves_arrived(expected.digest), uint64_t{1});
        QCOMPARE(newer.put_blob(expected.digest, random_, 1), 204);
        older.client().send(raw_leaf(std::span(random_).subspan(mebibyte, mebibyte)));
        QCOMPARE(older.client().receive().status, 409);
        QVERIFY(expected.took(random_));
    }

    void an_upload_that_is_no_longer_wanted_ends_with_its_next_bytes() {
        auto slow = lab_.contributor();
        const Expected expected = expect_upload(random_.size());
        slow.client().connect();
        slow.client().send("PUT " + path(expected.digest, 0) + " HTTP/1.1\r\nHost: lab\r\n" +
                           slow.authorization() + "Content-Length: " + std::to_string(random_.size()) +
                           "\r\n\r\n");
        slow.client().send(raw_leaf(std::span(random_).first(mebibyte)));
        QTRY_COMPARE(expected.upload.held.load(), uint64_t{1});
        expected.upload.wanted = false;
        slow.client().send("x");
        QCOMPARE(slow.client().receive().status, 409);
    }

    void one_address_gets_a_quarter_of_the_transfers() {
        LabAtTest lab;
        lab.limits.transfers = 4;
        lab.door.blobs[name_of(1)] = random_blob(64 * mebibyte);
        lab.start();
        auto settings = lab.client_settings();
        settings.receive_buffer_bytes = 64 << 10;
        auto first = lab.contributor(settings);
        first.client().connect();
        const std::string request =
            "GET " + path(name_of(1), 0) + " HTTP/1.1\r\nHost: lab\r\n" + first.authorization() + "\r\n";
        first.client().send(request);
        QTRY_VERIFY(lab.door.leaves_read > 0);
        auto second = lab.contributor();
        const auto busy = second.client().request("GET", path(name_of(1), 0), second.authorization());
        QCOMPARE(busy.status, 503);
        QCOMPARE(busy.header("retry-after"), std::string("1"));
        settings.from = "127.0.0.2";
        auto elsewhere = lab.contributor(settings);
        elsewhere.client().connect();
        elsewhere.client().send(request);
        QTRY_VERIFY(lab.door.sources_opened >= 2);
        first.client().disconnect();
        QTRY_COMPARE(second.client().request("GET", path(name_of(1), 63), second.authorization()).status,
                     200);
    }
};

}  // namespace goblin::lab

QTEST_GUILESS_MAIN(goblin::lab::TestServiceBlobs)
#include "test_service_blobs.moc"
