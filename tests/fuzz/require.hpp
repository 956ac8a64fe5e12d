// What must hold for every input: stops the fuzzer where it doesn't, whatever the build type.
#pragma once

#define REQUIRE(condition)                  \
    do {                                    \
        if (!(condition)) __builtin_trap(); \
    } while (false)
