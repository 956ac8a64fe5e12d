// Lab pin: the one key that a lab must show. It is the key of the invitation link, until the lab shows a
// newer one that is signed by it; from then on it is the newer one alone.
//
// Kept in labs/KEY/keys: the lab's keys, the one that counts first. The file is missing as long as that is
// KEY.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "app/worker/log.hpp"
#include "core/work/digest.hpp"

namespace goblin::worker {

// The keys that the lab is known to have had, the one that counts first. Throws ErrorKind::input for a
// damaged file, ErrorKind::io.
std::vector<Digest> load_lab_keys(const std::filesystem::path& lab_folder, const Digest& lab_key);

// May be used from any thread.
class LabPin {
  public:
    // Throws as load_lab_keys.
    LabPin(std::filesystem::path lab_folder, const Digest& lab_key, Log& log);

    Digest key() const;
    // `shown`: what followed_keys() makes of the peer's certificates. When the pinned key is an older one
    // among them, the first is pinned from now on, safe on disk before this returns. Throws ErrorKind::denied
    // when it is not among them, ErrorKind::io when the new pin can't be kept. `place` is for people.
    void expect(const std::vector<Digest>& shown, const std::string& place);
    // As expect(), and keeps all that are shown, so that links with any of them are known to lead here.
    void learn(const std::vector<Digest>& shown, const std::string& place);

  private:
    void follow(const std::vector<Digest>& shown, const std::string& place);
    void keep(const std::vector<Digest>& shown);

    std::filesystem::path folder_;
    Log& log_;
    mutable std::mutex mutex_;
    std::vector<Digest> keys_;
};

}  // namespace goblin::worker
