// Transfers of blobs over one connection: a fetch into the cache, an upload of an output. Both go on after a
// break with the leaf at which they stopped.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "app/worker/http_connection.hpp"
#include "app/worker/lab_refusal.hpp"
#include "core/work/exchange.hpp"

namespace goblin::worker {

struct FetchOrder {
    Credential credential{};
    Digest digest;
    TensorSpec spec;
    std::filesystem::path part;   // where it grows
    std::filesystem::path place;  // where it goes when complete and right
};

struct UploadOrder {
    Credential credential{};
    Digest digest;  // as committed to
    TensorSpec spec;
    std::filesystem::path file;
    // Compare the file with the digest, by this key, before anything is sent.
    std::optional<SecretKey> check_by;
};

struct TransferOutcome {
    enum class Kind {
        done,
        refused,  // by the lab, see `refusal`
        network,  // no connection, or it broke: goes on later
        wrong,    // the lab's bytes aren't those of the digest
        disk,     // this computer's disk
        spoiled,  // the file isn't what was committed to
        stopped,  // by this program
    };
    Kind kind = Kind::done;
    std::string reason;
    LabRefusal refusal;
    bool progressed = false;  // at least one leaf more has arrived
};

using TransferDone = std::function<void(TransferOutcome)>;

// Run in the connection's thread, one transfer per connection at a time. `done` is called once, unless the
// connection is aborted. `connection` must live until then.
void fetch_blob(HttpConnection& connection, FetchOrder order, TransferDone done);
void upload_blob(HttpConnection& connection, UploadOrder order, TransferDone done);

}  // namespace goblin::worker
