// SIGTERM and SIGINT as calls in the event loop.
#pragma once

#include <QObject>
#include <functional>

namespace goblin::worker {

class Signals : public QObject {
  public:
    // One of it at a time.
    explicit Signals(std::function<void()> asked_to_end, QObject* parent = nullptr);
    ~Signals() override;

  private:
    int ends_[2];
};

}  // namespace goblin::worker
