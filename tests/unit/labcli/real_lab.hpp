// A lab node on a directory of its own, in this process: everything but the network.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "labcli/node/lab_node.hpp"
#include "tests/support/temporary_folder.hpp"

namespace goblin::lab {

class RealLab {
  public:
    RealLab() { LabDirectory::create(path(), LabSettings()); }

    std::filesystem::path path() const { return folder_ / "lab"; }
    std::filesystem::path database() const { return LabDirectory(path()).database(); }
    LabNode& start() {
        directory_ = std::make_unique<LabDirectory>(path());
        NodeSettings settings;
        settings.threads = 1;
        settings.log = [this](LogLevel, std::string_view text) {
            const std::lock_guard lock(mutex_);
            log_ += std::string(text) + "\n";
        };
        settings.fatal = [this](const std::string& reason) {
            const std::lock_guard lock(mutex_);
            fatal_ += reason + "\n";
        };
        node_ = std::make_unique<LabNode>(*directory_, directory_->certificate(), std::move(settings));
        return *node_;
    }
    LabNode& node() { return *node_; }
    void stop() { node_.reset(); }

    bool logged(const std::string& text) const {
        const std::lock_guard lock(mutex_);
        return log_.find(text) != std::string::npos;
    }
    // Why it said that it can't go on; empty: it didn't.
    std::string fatal() const {
        const std::lock_guard lock(mutex_);
        return fatal_;
    }

  private:
    test::TemporaryFolder folder_;
    mutable std::mutex mutex_;
    std::string log_;
    std::string fatal_;
    std::unique_ptr<LabDirectory> directory_;
    std::unique_ptr<LabNode> node_;
};

}  // namespace goblin::lab
