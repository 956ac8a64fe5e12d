// Gives turns to uploads.
#include "labcli/service/upload_turns.hpp"

#include "core/error.hpp"

namespace goblin::lab {

void UploadTurns::Turn::check_current() const {
    if (number_ != blob_->newest)
        throw Error(ErrorKind::cancelled,
                    "expected one upload of a blob at a time, found a newer one; continue with that one");
}

UploadTurns::Turn UploadTurns::take(const Credential& credential, const Digest& digest) {
    Turn turn;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(blobs_, [](const auto& entry) { return entry.second.expired(); });
        auto& known = blobs_[Key(credential, digest)];
        turn.blob_ = known.lock();
        if (!turn.blob_) known = turn.blob_ = std::make_shared<Turn::Blob>();
    }
    const std::lock_guard lock(turn.blob_->mutex);
    turn.number_ = ++turn.blob_->newest;
    return turn;
}

}  // namespace goblin::lab
