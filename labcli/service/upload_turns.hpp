// Who may write an upload. A contributor whose connection broke uploads again before the old one is known to
// be dead: the newest upload takes the turn, and the older writes nothing more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/work/exchange.hpp"

namespace goblin::lab {

class UploadTurns {
  public:
    class Turn {
      public:
        // Runs `work` unless a newer upload of the blob has begun; then throws ErrorKind::cancelled. One at a
        // time.
        template <typename Work>
        void run(Work&& work) {
            const std::lock_guard lock(blob_->mutex);
            check_current();
            std::forward<Work>(work)();
        }

      private:
        friend class UploadTurns;
        struct Blob {
            std::mutex mutex;
            uint64_t newest = 0;  // guarded by mutex
        };
        void check_current() const;

        std::shared_ptr<Blob> blob_;
        uint64_t number_ = 0;
    };

    // Waits for a piece of the older upload that is being written; so call it on a blob thread.
    Turn take(const Credential& credential, const Digest& digest);

  private:
    using Key = std::pair<Credential, Digest>;

    std::mutex mutex_;
    std::map<Key, std::weak_ptr<Turn::Blob>> blobs_;
};

}  // namespace goblin::lab
