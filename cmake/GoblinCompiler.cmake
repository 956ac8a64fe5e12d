# Compiler settings that every target shares: the arithmetic contract's flags, warnings as errors, sanitizers.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(Threads REQUIRED)

# Contract, rule 2: one rounding per written operation. The other two flags change no bit and let loops vectorise.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-trapping-math)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
add_compile_options(-fno-omit-frame-pointer)
# Asserts stay on, in what packagers build, too: they guard both sides of every boundary.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_MINSIZEREL "-Os")

if(GOBLIN_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -O1 -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(GOBLIN_SANITIZE STREQUAL "thread")
  # GCC warns of Boost.Asio's fences, which the sanitizer doesn't follow; Asio's locks, which it does, order the same.
  add_compile_options(-fsanitize=thread -O1 -g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
elseif(NOT GOBLIN_SANITIZE STREQUAL "")
  message(FATAL_ERROR "GOBLIN_SANITIZE is address, thread or empty, found '${GOBLIN_SANITIZE}'")
endif()

if(GOBLIN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "GOBLIN_FUZZ needs clang, found ${CMAKE_CXX_COMPILER_ID}; use -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # The libraries count their branches for the fuzzer too; its main() comes with each target, see tests/fuzz.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -O1 -g1)
  add_link_options(-fsanitize=address,undefined)
endif()

include_directories(${CMAKE_SOURCE_DIR})
