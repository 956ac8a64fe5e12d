// The owner's signals as calls in the event loop.
#pragma once

#include <QObject>
#include <functional>

namespace goblin::worker {

enum class Wish : char {
    end,     // SIGTERM, SIGINT, SIGHUP
    pause,   // SIGUSR1
    resume,  // SIGUSR2
};

class Signals : public QObject {
  public:
    // One of it at a time.
    explicit Signals(std::function<void(Wish)> wished, QObject* parent = nullptr);
    ~Signals() override;

  private:
    int ends_[2];
};

}  // namespace goblin::worker
