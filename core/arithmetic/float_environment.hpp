// FloatEnvironment: the floating-point settings that the contract asks for, held for a scope.
#pragma once

#include <cfenv>

namespace goblin {

// Contract, rule 2: round to nearest even, subnormals kept (no flush to zero), no traps. Set on every thread
// that computes, since a host program or a driver may have left other settings; the thread's own settings
// come back at the end of the scope.
class FloatEnvironment {
  public:
    FloatEnvironment() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~FloatEnvironment() { std::fesetenv(&saved_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  private:
    std::fenv_t saved_{};
};

}  // namespace goblin
