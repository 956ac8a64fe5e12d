// Keeps account of blobs on the disk.
#include "app/worker/blob_cache.hpp"

#include <algorithm>
#include <cassert>

#include "core/error.hpp"
#include "core/graph/checked.hpp"
#include "core/tensor/file.hpp"

namespace goblin::worker {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view part_suffix = ".part";
constexpr uint64_t spare_disk_bytes = uint64_t{1} << 20;  // for the journal and small files

std::vector<BlobNeed> distinct(std::span<const BlobNeed> needs) {
    std::vector<BlobNeed> once(needs.begin(), needs.end());
    const auto by_digest = [](const BlobNeed& a, const BlobNeed& b) { return a.digest < b.digest; };
    std::sort(once.begin(), once.end(), by_digest);
    once.erase(std::unique(once.begin(), once.end(),
                           [](const BlobNeed& a, const BlobNeed& b) { return a.digest == b.digest; }),
               once.end());
    return once;
}

}  // namespace

BlobCache::BlobCache(fs::path labs_folder, uint64_t limit_bytes, Changed changed)
    : labs_folder_(std::move(labs_folder)), limit_bytes_(limit_bytes), changed_(std::move(changed)) {
    find_blobs();
    make_room(0);
}

void BlobCache::find_blobs() {
    struct Found {
        fs::file_time_type used;
        BlobName name;
        uint64_t size_bytes;
    };
    std::vector<Found> found;
    std::error_code trouble;
    for (const auto& lab : fs::directory_iterator(labs_folder_, trouble)) {
        const auto key = Digest::from_hex(lab.path().filename().string());
        if (!key) continue;
        for (const auto& file : fs::directory_iterator(lab.path() / "blobs", trouble))
            if (const auto digest = Digest::from_hex(file.path().filename().string()))
                found.push_back({file.last_write_time(trouble), {*key, *digest}, file.file_size(trouble)});
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.used < b.used; });
    for (const Found& file : found) {
        blobs_[file.name] = {file.size_bytes, 0, ++uses_, true, false};
        used_bytes_ += file.size_bytes;
    }
}

// A digest stands for one tensor: of two sizes that a lab gives it, one is wrong. Room was made for the
// first, so the other must not be fetched in its name.
bool BlobCache::sizes_differ(const Digest& lab, std::span<const BlobNeed> needs) {
    std::map<Digest, uint64_t> sizes;
    for (const BlobNeed& need : needs) {
        const uint64_t size_bytes = need.spec.size_bytes();
        if (sizes.try_emplace(need.digest, size_bytes).first->second != size_bytes) return true;
        const auto blob = blobs_.find({lab, need.digest});
        if (blob == blobs_.end() || blob->second.size_bytes == size_bytes) continue;
        if (blob->second.pins > 0 || blob->second.checked) return true;
        drop(blob);  // a file that was cut short, or grew, while no worker ran
    }
    return false;
}

BlobCache::Room BlobCache::pin(const Digest& lab, std::span<const BlobNeed> needs, uint64_t beside_bytes) {
    if (sizes_differ(lab, needs)) return Room::differs;
    const std::vector<BlobNeed> wanted = distinct(needs);
    uint64_t all_bytes = beside_bytes;
    uint64_t missing_bytes = 0;
    for (const BlobNeed& need : wanted) {
        all_bytes = saturating_sum({all_bytes, need.spec.size_bytes()});
        if (!blobs_.contains({lab, need.digest}))
            missing_bytes = saturating_sum({missing_bytes, need.spec.size_bytes()});
    }
    if (all_bytes > limit_beside_journals_bytes()) return Room::never;
    for (const BlobNeed& need : wanted)  // pinned first, so that making room doesn't drop what is needed
        if (const auto blob = blobs_.find({lab, need.digest}); blob != blobs_.end()) ++blob->second.pins;
    const auto give_up = [&](Room room) {
        for (const BlobNeed& need : wanted)
            if (const auto blob = blobs_.find({lab, need.digest}); blob != blobs_.end()) --blob->second.pins;
        return room;
    };
    if (!make_room(saturating_sum({missing_bytes, beside_bytes}))) return give_up(Room::later);
    if (missing_bytes > 0 && !make_room_on_disk(missing_bytes)) {
        give_up(Room::later);
        const bool others =
            std::any_of(blobs_.begin(), blobs_.end(), [](const auto& blob) { return blob.second.pins > 0; });
        return others ? Room::later : Room::disk_full;
    }
    used_bytes_ += missing_bytes + beside_bytes;
    for (const BlobNeed& need : wanted) {
        const auto [blob, fresh] =
            blobs_.try_emplace({lab, need.digest}, Blob{need.spec.size_bytes(), 1, 0, false, false});
        blob->second.last_used = ++uses_;
        std::error_code ignored;
        if (!fresh && blob->second.held)
            fs::last_write_time(path_of(blob->first), fs::file_time_type::clock::now(), ignored);
    }
    return Room::made;
}

void BlobCache::unpin(const Digest& lab, std::span<const BlobNeed> needs) {
    for (const BlobNeed& need : distinct(needs)) {
        const auto blob = blobs_.find({lab, need.digest});
        if (blob == blobs_.end()) continue;  // spoiled meanwhile
        assert(blob->second.pins > 0);
        if (--blob->second.pins == 0 && !blob->second.held) drop(blob);
    }
}

bool BlobCache::make_room(uint64_t needed_bytes) {
    uint64_t droppable = 0;
    for (const auto& [name, blob] : blobs_)
        if (blob.pins == 0) droppable += blob.size_bytes;
    if (saturating_sum({used_bytes_ - droppable, needed_bytes}) > limit_bytes_) return false;
    while (saturating_sum({used_bytes_, needed_bytes}) > limit_bytes_) {
        [[maybe_unused]] const bool dropped = drop_oldest();
        assert(dropped);
    }
    return true;
}

// Others fill the disk, too: what the limit allows may not be there.
bool BlobCache::make_room_on_disk(uint64_t needed_bytes) {
    while (!disk_has_room(needed_bytes))
        if (!drop_oldest()) return false;
    return true;
}

bool BlobCache::disk_has_room(uint64_t needed_bytes) const {
    uint64_t coming_bytes = saturating_sum({needed_bytes, spare_disk_bytes});
    std::error_code missing;
    for (const auto& [name, blob] : blobs_) {
        if (blob.held) continue;
        const uint64_t arrived_bytes = fs::file_size(part_path_of(name), missing);
        coming_bytes = saturating_sum(
            {coming_bytes, blob.size_bytes - (missing ? 0 : std::min(arrived_bytes, blob.size_bytes))});
    }
    try {
        return free_space_bytes(labs_folder_) >= coming_bytes;
    } catch (const Error&) {
        return true;  // the system doesn't tell: writing will show
    }
}

bool BlobCache::drop_oldest() {
    auto oldest = blobs_.end();
    for (auto blob = blobs_.begin(); blob != blobs_.end(); ++blob)
        if (blob->second.pins == 0 &&
            (oldest == blobs_.end() || blob->second.last_used < oldest->second.last_used))
            oldest = blob;
    if (oldest == blobs_.end()) return false;
    drop(oldest);
    return true;
}

void BlobCache::drop(Blobs::iterator blob) {
    const BlobName name = blob->first;
    const bool held = blob->second.held;
    used_bytes_ -= blob->second.size_bytes;
    blobs_.erase(blob);
    std::error_code ignored;
    fs::remove(held ? path_of(name) : part_path_of(name), ignored);
    if (held) changed_(name, false);
}

bool BlobCache::holds(const BlobName& name) const {
    const auto blob = blobs_.find(name);
    return blob != blobs_.end() && blob->second.held;
}

bool BlobCache::checked(const BlobName& name) const {
    const auto blob = blobs_.find(name);
    return blob != blobs_.end() && blob->second.checked;
}

void BlobCache::landed(const BlobName& name) {
    const auto blob = blobs_.find(name);
    if (blob == blobs_.end() || blob->second.held) {  // nobody wanted it any more when its last byte came
        std::error_code ignored;
        if (blob == blobs_.end()) fs::remove(path_of(name), ignored);
        return;
    }
    blob->second.held = blob->second.checked = true;
    changed_(name, true);
}

void BlobCache::spoiled(const BlobName& name) {
    const auto blob = blobs_.find(name);
    if (blob == blobs_.end() || !blob->second.held) return;
    std::error_code ignored;
    fs::remove(path_of(name), ignored);
    blob->second.held = blob->second.checked = false;
    changed_(name, false);
    if (blob->second.pins == 0) drop(blob);
}

void BlobCache::occupy(uint64_t bytes) {
    used_bytes_ += bytes;
    make_room(0);
}

void BlobCache::journal_takes(uint64_t before_bytes, uint64_t after_bytes) {
    assert(before_bytes <= journals_bytes_);
    journals_bytes_ += after_bytes - before_bytes;
    used_bytes_ += after_bytes - before_bytes;
    make_room(0);
}

uint64_t BlobCache::limit_beside_journals_bytes() const {
    return limit_bytes_ - std::min(limit_bytes_, journals_bytes_);
}

void BlobCache::vacate(uint64_t bytes) {
    assert(bytes <= used_bytes_);
    used_bytes_ -= bytes;
}

std::vector<Digest> BlobCache::held(const Digest& lab) const {
    std::vector<Digest> digests;
    for (const auto& [name, blob] : blobs_)
        if (name.lab == lab && blob.held) digests.push_back(name.digest);
    return digests;
}

fs::path BlobCache::path_of(const BlobName& name) const {
    return labs_folder_ / name.lab.hex() / "blobs" / name.digest.hex();
}

fs::path BlobCache::part_path_of(const BlobName& name) const {
    return path_of(name).string() + std::string(part_suffix);
}

void BlobCache::drop_stale_parts(const Digest& lab) {
    std::error_code trouble;
    for (const auto& file : fs::directory_iterator(labs_folder_ / lab.hex() / "blobs", trouble)) {
        if (file.path().extension() != part_suffix) continue;
        const auto digest = Digest::from_hex(file.path().stem().string());
        if (!digest || !blobs_.contains({lab, *digest})) fs::remove(file.path(), trouble);
    }
}

}  // namespace goblin::worker
