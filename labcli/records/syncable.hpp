// Syncable: a file whose writes must be on disk before the records that speak of them.
#pragma once

namespace goblin::lab {

class Syncable {
  public:
    virtual ~Syncable() = default;
    // Throws ErrorKind::io.
    virtual void sync() = 0;
};

}  // namespace goblin::lab
