// Preloaded into a program under test: a wall clock that is off by GOBLIN_TEST_CLOCK_OFF_S seconds. Monotonic
// clocks go on as they are.
#include <dlfcn.h>
#include <sys/time.h>

#include <cstdlib>
#include <ctime>

namespace {

time_t seconds_off() {
    const char* const off = std::getenv("GOBLIN_TEST_CLOCK_OFF_S");
    return off == nullptr ? 0 : static_cast<time_t>(std::atoll(off));
}

template <typename Real>
Real real(const char* name) {
    return reinterpret_cast<Real>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    static const auto real_clock = real<int (*)(clockid_t, timespec*)>("clock_gettime");
    const int answer = real_clock(clock, now);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += seconds_off();
    return answer;
}

int gettimeofday(timeval* now, void* zone) noexcept {
    static const auto real_clock = real<int (*)(timeval*, void*)>("gettimeofday");
    const int answer = real_clock(now, zone);
    if (answer == 0) now->tv_sec += seconds_off();
    return answer;
}

time_t time(time_t* target) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (target != nullptr) *target = now.tv_sec;
    return now.tv_sec;
}
}
