// What the cache keeps, what it drops, and what a half-fetched blob becomes.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/worker/blob_cache.hpp"
#include "app/worker/blob_news.hpp"
#include "app/worker/part_file.hpp"
#include "app/worker/private_file.hpp"
#include "core/work/leaf_stream.hpp"
#include "tests/support/error_of.hpp"

using namespace goblin;
using namespace goblin::worker;
namespace fs = std::filesystem;
using Room = BlobCache::Room;

namespace {

Digest digest_of(uint8_t number) {
    Digest digest;
    digest.bytes.fill(number);
    return digest;
}

BlobNeed need_of(uint8_t number, int64_t bytes = 1000) {
    return {digest_of(number), {DType::u8, Shape{bytes}}};
}

const Digest lab = digest_of(0xaa);
const Digest other_lab = digest_of(0xbb);

}  // namespace

class TestBlobCache : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> folder_;
    std::vector<std::pair<Digest, bool>> changes_;

    fs::path labs() const { return folder_->path().toStdString(); }
    BlobCache cache(uint64_t limit_bytes) {
        return BlobCache(labs(), limit_bytes, [this](const BlobName& name, bool held) {
            changes_.emplace_back(name.digest, held);
        });
    }
    static void land(BlobCache& blobs, const BlobNeed& need, const Digest& of_lab = lab) {
        std::ofstream(blobs.path_of({of_lab, need.digest})) << std::string(need.spec.size_bytes(), 'x');
        blobs.landed({of_lab, need.digest});
    }
    // Pins, fetches and lets go again.
    static void keep(BlobCache& blobs, const BlobNeed& need, const Digest& of_lab = lab) {
        QCOMPARE(blobs.pin(of_lab, std::span(&need, 1)), Room::made);
        land(blobs, need, of_lab);
        blobs.unpin(of_lab, std::span(&need, 1));
    }

  private slots:
    void init() {
        folder_ = std::make_unique<QTemporaryDir>();
        changes_.clear();
        for (const Digest& key : {lab, other_lab}) make_private_folder(labs() / key.hex() / "blobs");
    }

    void a_digest_that_is_pinned_with_one_size_is_not_pinned_with_another() {
        BlobCache blobs = cache(10'000);
        const BlobNeed small = need_of(1, 10);
        const BlobNeed large = need_of(1, 9000);
        QCOMPARE(blobs.pin(lab, std::span(&small, 1)), Room::made);
        QCOMPARE(blobs.pin(lab, std::span(&large, 1)), Room::differs);
        QCOMPARE(blobs.pin(lab, std::span(&small, 1)), Room::made);
        QCOMPARE(blobs.used_bytes(), uint64_t{10});
        QCOMPARE(blobs.pin(other_lab, std::span(&large, 1)), Room::made);
        QCOMPARE(blobs.used_bytes(), uint64_t{9010});
    }
    void a_digest_that_landed_with_one_size_is_not_pinned_with_another() {
        BlobCache blobs = cache(10'000);
        keep(blobs, need_of(1, 10));
        const BlobNeed large = need_of(1, 9000);
        QCOMPARE(blobs.pin(lab, std::span(&large, 1)), Room::differs);
        QVERIFY(blobs.holds({lab, digest_of(1)}));
    }
    void one_task_does_not_give_one_digest_two_sizes() {
        BlobCache blobs = cache(10'000);
        const std::vector<BlobNeed> both{need_of(1, 10), need_of(1, 9000)};
        QCOMPARE(blobs.pin(lab, both), Room::differs);
        QCOMPARE(blobs.used_bytes(), uint64_t{0});
    }
    void a_file_whose_size_changed_between_runs_is_fetched_again() {
        {
            BlobCache blobs = cache(10'000);
            keep(blobs, need_of(1, 1000));
        }
        const BlobName name{lab, digest_of(1)};
        BlobCache blobs = cache(10'000);
        fs::resize_file(blobs.path_of(name), 500);
        BlobCache after = cache(10'000);
        const BlobNeed need = need_of(1, 1000);
        QCOMPARE(after.pin(lab, std::span(&need, 1)), Room::made);
        QVERIFY(!after.holds(name));
        QCOMPARE(after.used_bytes(), uint64_t{1000});
    }
    void the_least_recently_used_goes_first() {
        BlobCache blobs = cache(3000);
        for (const uint8_t number : {1, 2, 3}) keep(blobs, need_of(number));
        const BlobNeed first = need_of(1);
        QCOMPARE(blobs.pin(lab, std::span(&first, 1)), Room::made);  // used again
        blobs.unpin(lab, std::span(&first, 1));
        keep(blobs, need_of(4));
        QVERIFY(blobs.holds({lab, digest_of(1)}));
        QVERIFY(!blobs.holds({lab, digest_of(2)}));
        QVERIFY(!fs::exists(blobs.path_of({lab, digest_of(2)})));
        QCOMPARE(blobs.used_bytes(), uint64_t{3000});
        const std::vector<std::pair<Digest, bool>> expected{{digest_of(1), true},
                                                            {digest_of(2), true},
                                                            {digest_of(3), true},
                                                            {digest_of(2), false},
                                                            {digest_of(4), true}};
        QVERIFY(changes_ == expected);
    }

    void what_is_pinned_stays_and_others_wait() {
        BlobCache blobs = cache(3000);
        const std::vector<BlobNeed> two{need_of(1), need_of(2)};
        QCOMPARE(blobs.pin(lab, two), Room::made);
        const std::vector<BlobNeed> next{need_of(2), need_of(3), need_of(4)};
        QCOMPARE(blobs.pin(lab, next), Room::later);
        QCOMPARE(blobs.used_bytes(), uint64_t{2000});
        land(blobs, two[0]);
        blobs.unpin(lab, two);
        QCOMPARE(blobs.pin(lab, next), Room::made);
        QVERIFY(!blobs.holds({lab, digest_of(1)}));
    }

    void what_never_fits_is_said_at_once() {
        BlobCache blobs = cache(3000);
        const std::vector<BlobNeed> needs{need_of(1, 2000), need_of(2, 2000)};
        QCOMPARE(blobs.pin(lab, needs), Room::never);
        const std::vector<BlobNeed> huge{need_of(1, max_elements), need_of(2, max_elements)};
        QCOMPARE(blobs.pin(lab, huge), Room::never);
        QCOMPARE(blobs.used_bytes(), uint64_t{0});
    }

    void a_blob_that_is_needed_twice_takes_room_once() {
        BlobCache blobs = cache(1000);
        const std::vector<BlobNeed> twice{need_of(1), need_of(1)};
        QCOMPARE(blobs.pin(lab, twice), Room::made);
        QCOMPARE(blobs.used_bytes(), uint64_t{1000});
        blobs.unpin(lab, twice);
        QCOMPARE(blobs.used_bytes(), uint64_t{0});
    }

    void labs_do_not_share_blobs_but_share_the_limit() {
        BlobCache blobs = cache(2000);
        keep(blobs, need_of(1), lab);
        keep(blobs, need_of(1), other_lab);
        QCOMPARE(blobs.used_bytes(), uint64_t{2000});
        keep(blobs, need_of(2), other_lab);
        QVERIFY(!blobs.holds({lab, digest_of(1)}));
        QCOMPARE(blobs.held(lab).size(), size_t{0});
        QCOMPARE(blobs.held(other_lab).size(), size_t{2});
    }

    void outputs_on_the_disk_take_room_from_blobs() {
        BlobCache blobs = cache(3000);
        for (const uint8_t number : {1, 2, 3}) keep(blobs, need_of(number));
        blobs.occupy(1500);
        QCOMPARE(blobs.held(lab).size(), size_t{1});
        blobs.vacate(1500);
        keep(blobs, need_of(4));
        QCOMPARE(blobs.held(lab).size(), size_t{2});
    }

    void a_restart_finds_the_blobs_trusts_none_and_keeps_the_limit() {
        {
            BlobCache blobs = cache(3000);
            for (const uint8_t number : {1, 2, 3}) keep(blobs, need_of(number));
            fs::last_write_time(blobs.path_of({lab, digest_of(1)}),
                                fs::file_time_type::clock::now() - std::chrono::hours(1));
        }
        BlobCache blobs = cache(2000);
        QCOMPARE(blobs.held(lab).size(), size_t{2});
        QVERIFY(!blobs.holds({lab, digest_of(1)}));
        QVERIFY(blobs.holds({lab, digest_of(2)}));
        QVERIFY(!blobs.checked({lab, digest_of(2)}));
        keep(blobs, need_of(5));
        QVERIFY(blobs.checked({lab, digest_of(5)}));
    }

    void a_damaged_blob_is_forgotten_and_fetched_anew_while_it_is_needed() {
        BlobCache blobs = cache(3000);
        const BlobNeed need = need_of(1);
        QCOMPARE(blobs.pin(lab, std::span(&need, 1)), Room::made);
        land(blobs, need);
        blobs.spoiled({lab, need.digest});
        QVERIFY(!blobs.holds({lab, need.digest}));
        QCOMPARE(blobs.used_bytes(), uint64_t{1000});
        land(blobs, need);
        QVERIFY(blobs.holds({lab, need.digest}));
    }

    void parts_that_nobody_waits_for_are_dropped() {
        BlobCache blobs = cache(3000);
        const BlobNeed need = need_of(1);
        QCOMPARE(blobs.pin(lab, std::span(&need, 1)), Room::made);
        for (const uint8_t number : {1, 2})
            std::ofstream(blobs.part_path_of({lab, digest_of(number)})) << "part";
        blobs.drop_stale_parts(lab);
        QVERIFY(fs::exists(blobs.part_path_of({lab, digest_of(1)})));
        QVERIFY(!fs::exists(blobs.part_path_of({lab, digest_of(2)})));
        blobs.unpin(lab, std::span(&need, 1));
        QVERIFY(!fs::exists(blobs.part_path_of({lab, digest_of(1)})));
    }

    void news_stay_news_until_their_exchange_is_answered() {
        BlobNews news;
        news.changed(digest_of(1), true);
        Want first;
        news.put_into(first, 1);
        QCOMPARE(first.blobs_added.size(), size_t{1});
        news.changed(digest_of(1), false);  // after the first exchange left
        news.answered(1);
        Want second;
        news.put_into(second, 2);
        QCOMPARE(second.blobs_removed.size(), size_t{1});
        QCOMPARE(second.blobs_added.size(), size_t{0});
        Want third;  // the second got lost
        news.put_into(third, 3);
        QCOMPARE(third.blobs_removed.size(), size_t{1});
        news.answered(3);
        QVERIFY(news.empty());
    }

    void news_beyond_the_limit_wait_for_the_next_exchange() {
        BlobNews news;
        for (uint32_t number = 0; number < 5000; ++number) {
            Digest digest;
            digest.bytes[0] = static_cast<uint8_t>(number);
            digest.bytes[1] = static_cast<uint8_t>(number >> 8);
            news.changed(digest, true);
        }
        Want want;
        news.put_into(want, 1);
        QCOMPARE(want.blobs_added.size(), size_t{limits::held_blobs});
        news.answered(1);
        Want rest;
        news.put_into(rest, 2);
        QCOMPARE(rest.blobs_added.size(), size_t{5000 - limits::held_blobs});
    }

    void a_part_goes_on_with_the_leaf_after_the_last_whole_one() {
        const TensorSpec spec{DType::u8, Shape{2'500'000}};
        std::vector<std::byte> bytes(spec.size_bytes());
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
        const Digest digest = tensor_digest({}, spec, bytes);
        const auto leaf = [&](uint64_t index) {
            return std::span<const std::byte>(bytes).subspan(index * leaf_size_bytes,
                                                             leaf_length(bytes.size(), index));
        };
        const fs::path part_path = labs() / "blob.part";
        const fs::path place = labs() / "blob";
        {
            PartFile part(part_path, spec);
            part.append(0, leaf(0));
            part.append(1, leaf(1));
        }
        fs::resize_file(part_path, leaf_size_bytes + 1000);  // as a kill left it
        {
            PartFile part(part_path, spec);
            QCOMPARE(part.next_leaf(), uint64_t{1});
            part.append(1, leaf(1));
            part.append(2, leaf(2));
            QVERIFY(part.complete());
            QVERIFY(part.finish(digest, place));
        }
        QCOMPARE(fs::file_size(place), bytes.size());
        QVERIFY(!fs::exists(part_path));
    }

    void a_part_with_other_bytes_is_thrown_away() {
        const TensorSpec spec{DType::u8, Shape{100}};
        const fs::path part_path = labs() / "blob.part";
        PartFile part(part_path, spec);
        part.append(0, std::vector<std::byte>(100));
        QVERIFY(!part.finish(digest_of(1), labs() / "blob"));
        QVERIFY(!fs::exists(part_path));
        QVERIFY(!fs::exists(labs() / "blob"));
    }

    void an_empty_blob_is_one_empty_leaf() {
        const TensorSpec spec{DType::f32, Shape{0, 5}};
        PartFile part(labs() / "blob.part", spec);
        QVERIFY(!part.complete());
        part.append(0, {});
        QVERIFY(part.finish(tensor_digest({}, spec, {}), labs() / "blob"));
    }
};

QTEST_APPLESS_MAIN(TestBlobCache)
#include "test_blob_cache.moc"
