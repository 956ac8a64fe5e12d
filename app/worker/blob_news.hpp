// Blob news: what a lab must still be told about the blobs that this computer holds for it.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "core/work/exchange.hpp"

namespace goblin::worker {

class BlobNews {
  public:
    void changed(const Digest& digest, bool held) { news_[digest] = {held, 0}; }
    // The lab may have forgotten everything.
    void tell_all(std::span<const Digest> held);
    bool empty() const { return news_.empty(); }
    // Puts the news into an exchange of that sequence number. They stay news until it is answered: an
    // addition that was followed by a removal is never left out, since the lab may have heard the first only.
    void put_into(Want& want, uint64_t sequence);
    void answered(uint64_t sequence);

  private:
    struct News {
        bool held = false;
        uint64_t told_in = 0;  // 0: not yet
    };
    std::map<Digest, News> news_;
};

}  // namespace goblin::worker
