// Keeps news until they are acknowledged.
#include "app/worker/blob_news.hpp"

namespace goblin::worker {

void BlobNews::tell_all(std::span<const Digest> held) {
    for (const Digest& digest : held) changed(digest, true);
}

void BlobNews::put_into(Want& want, uint64_t sequence) {
    for (auto& [digest, news] : news_) {
        auto& list = news.held ? want.blobs_added : want.blobs_removed;
        if (list.size() == limits::held_blobs) continue;  // the next exchange brings the rest
        list.push_back(digest);
        news.told_in = sequence;
    }
}

void BlobNews::answered(uint64_t sequence) {
    std::erase_if(news_, [sequence](const auto& entry) {
        return entry.second.told_in != 0 && entry.second.told_in <= sequence;
    });
}

}  // namespace goblin::worker
