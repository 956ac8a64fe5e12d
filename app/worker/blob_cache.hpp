// Blob cache: which inputs are on this computer's disk, which of them open assignments need, and what goes
// first when room is wanted. Bookkeeping and files; bytes are fetched elsewhere (see blob_fetch.hpp).
//
// Blobs lie at labs/KEY/blobs/DIGEST, apart for each lab: a lab must not learn from our speed what another
// lab sent. The limit counts all labs together, and besides the outputs that wait on the disk and the
// journals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/work/digest.hpp"

namespace goblin::worker {

struct BlobName {
    Digest lab;
    Digest digest;
    friend auto operator<=>(const BlobName&, const BlobName&) = default;
};

struct BlobNeed {
    Digest digest;
    TensorSpec spec;
};

// One thread uses it.
class BlobCache {
  public:
    enum class Room {
        made,       // all needs are pinned; those that aren't held are to be fetched
        later,      // nothing was pinned; other assignments' blobs must go first
        never,      // nothing was pinned; the needs alone exceed the limit
        disk_full,  // nothing was pinned; the disk itself lacks room, and nothing of ours is left to go
        differs,    // nothing was pinned; a digest stands for a blob of another size already
    };
    using Changed = std::function<void(const BlobName&, bool held)>;

    // Finds what is there; drops the oldest above the limit. `labs_folder` is the directory's labs/.
    BlobCache(std::filesystem::path labs_folder, uint64_t limit_bytes, Changed changed);

    // All or nothing, so that two assignments never wait for each other's half. Drops unpinned blobs, least
    // recently used first. Where room is made, `beside_bytes` are occupied too.
    Room pin(const Digest& lab, std::span<const BlobNeed> needs, uint64_t beside_bytes = 0);
    void unpin(const Digest& lab, std::span<const BlobNeed> needs);
    bool holds(const BlobName& name) const;
    // Its bytes were compared with its digest since this program started.
    bool checked(const BlobName& name) const;
    // A pinned blob was fetched and put in place.
    void landed(const BlobName& name);
    // The file turned out not to hold what its name says.
    void spoiled(const BlobName& name);

    // Drops unpinned blobs until so much more may be occupied; false, and nothing dropped, when that can't
    // be.
    bool make_room(uint64_t needed_bytes);
    // Disk taken beside the blobs, by outputs…
    void occupy(uint64_t bytes);
    void vacate(uint64_t bytes);
    // … and by the labs' journals, for good: one that took `before` takes `after`.
    void journal_takes(uint64_t before_bytes, uint64_t after_bytes);

    std::vector<Digest> held(const Digest& lab) const;
    uint64_t used_bytes() const { return used_bytes_; }
    // Of the limit, what journals leave to blobs and outputs.
    uint64_t limit_beside_journals_bytes() const;

    std::filesystem::path path_of(const BlobName& name) const;
    // Where an unfinished fetch of it lies.
    std::filesystem::path part_path_of(const BlobName& name) const;
    // Drops unfinished fetches that nobody has pinned.
    void drop_stale_parts(const Digest& lab);

  private:
    struct Blob {
        uint64_t size_bytes = 0;
        uint64_t pins = 0;
        uint64_t last_used = 0;  // counts uses
        bool held = false;
        bool checked = false;
    };
    using Blobs = std::map<BlobName, Blob>;

    void find_blobs();
    bool sizes_differ(const Digest& lab, std::span<const BlobNeed> needs);
    bool make_room_on_disk(uint64_t needed_bytes);
    bool disk_has_room(uint64_t needed_bytes) const;
    bool drop_oldest();
    void drop(Blobs::iterator blob);

    std::filesystem::path labs_folder_;
    uint64_t limit_bytes_;
    Changed changed_;
    Blobs blobs_;
    uint64_t used_bytes_ = 0;  // by blobs, outputs and journals
    uint64_t journals_bytes_ = 0;
    uint64_t uses_ = 0;
};

}  // namespace goblin::worker
