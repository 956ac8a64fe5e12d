// LabDirectory: the files of a lab, and the lock that keeps a second lab node out.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "labcli/node/lab_settings.hpp"
#include "labcli/service/certificate.hpp"

namespace goblin::lab {

class LabDirectory {
  public:
    // `path`, else GOBLIN_LAB_DIR, else ./goblin-lab.
    static std::filesystem::path choose(const std::string& path);

    // Makes the folder (0700), key, certificate and settings. Throws ErrorKind::usage when anything is there
    // already but an empty directory of the caller's own, or the settings can't be used.
    static void create(const std::filesystem::path& path, const LabSettings& settings);

    // Throws ErrorKind::usage when there is no lab.
    explicit LabDirectory(std::filesystem::path path);

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path database() const { return path_ / "lab.sqlite"; }
    std::filesystem::path admin_socket() const { return path_ / "admin.sock"; }
    // These throw ErrorKind::input when something is not what it should be.
    LabSettings settings() const;
    // For whoever holds the directory's lock: they may change files (see certificate.hpp).
    LabCertificate certificate() const;
    LabCertificate renew_key() const;

  private:
    std::filesystem::path path_;
};

// Held by the lab node that runs. Throws ErrorKind::usage when another one holds it, ErrorKind::io when the
// file system doesn't keep locks, on which the database could be damaged.
class DirectoryLock {
  public:
    explicit DirectoryLock(const LabDirectory& directory);
    ~DirectoryLock();
    DirectoryLock(const DirectoryLock&) = delete;
    DirectoryLock& operator=(const DirectoryLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace goblin::lab
