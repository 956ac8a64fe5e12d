// Transfers of one lab's blobs: queues and connections in a network thread of their own, so that hashing,
// unpacking and the disk keep nobody waiting.
#pragma once

#include <QObject>
#include <QThread>

#include "app/worker/blob_transfer.hpp"

namespace goblin::worker {

class Transfers : public QObject {
  public:
    // `network` must run; it and `pin` outlive this.
    Transfers(LabAddress address, LabPin& pin, QThread& network, QObject* parent = nullptr);
    // Drops all transfers; none is reported any more.
    ~Transfers() override;

    // `done` is called once, in this object's thread. A fetch of a digest must be done before the next of the
    // same.
    void fetch(FetchOrder order, TransferDone done);
    void upload(UploadOrder order, TransferDone done);
    // The fetch of that digest ends soon, as `stopped` unless it had just ended otherwise.
    void stop_fetch(const Digest& digest);

  private:
    class Lanes;
    void report(const TransferDone& done, TransferOutcome outcome);

    Lanes* lanes_;  // lives in the network thread
};

}  // namespace goblin::worker
