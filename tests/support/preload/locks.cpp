// Preloaded into a program under test: a file system whose locks don't hold, as some network file systems
// have.
//
// GOBLIN_TEST_LOCKS=fail: every lock is refused with ENOLCK. =ignore: every lock is granted to everybody.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

enum class Locks { keep, fail, ignore };

Locks locks() {
    const char* const wish = std::getenv("GOBLIN_TEST_LOCKS");
    if (wish == nullptr) return Locks::keep;
    return std::string_view(wish) == "fail" ? Locks::fail : Locks::ignore;
}

bool is_lock(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

int refuse_or_pretend() {
    if (locks() == Locks::ignore) return 0;
    errno = ENOLCK;
    return -1;
}

int control(const char* name, int descriptor, int command, void* argument) {
    if (is_lock(command) && locks() != Locks::keep) return refuse_or_pretend();
    using Real = int (*)(int, int, ...);
    return reinterpret_cast<Real>(dlsym(RTLD_NEXT, name))(descriptor, command, argument);
}

}  // namespace

extern "C" {

int flock(int descriptor, int operation) noexcept {
    if (locks() != Locks::keep) return refuse_or_pretend();
    using Real = int (*)(int, int);
    return reinterpret_cast<Real>(dlsym(RTLD_NEXT, "flock"))(descriptor, operation);
}

int fcntl(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    return control("fcntl", descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    return control("fcntl64", descriptor, command, argument);
}
}
