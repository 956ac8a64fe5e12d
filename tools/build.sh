# Configures and builds one folder per kind of build. Sourced by ./goblin.

jobs=$(nproc)
# Where ccache is installed, another checkout's objects of equal sources are taken.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

# build_tree FOLDER [CMAKE OPTION …] -- TARGET …
build_tree() {
  local folder=$1 options=() log
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  command -v mold >/dev/null && options+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold)
  log=$(mktemp)
  if ! cmake -S . -B "$folder" -G Ninja -Wno-dev "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "goblin: could not configure $folder; the lines above say why. If the folder is from another compiler or place, remove it." >&2
    return 1
  fi
  rm -f "$log"
  cmake --build "$folder" -j "$jobs" --target "$@" || {
    echo "goblin: could not build $* in $folder; the lines above say why" >&2
    return 1
  }
}

# build_release TARGET …: the programs people run, tests and benchmarks.
build_release() { build_tree build -DCMAKE_BUILD_TYPE=Release -DGOBLIN_BENCH=ON -- "$@"; }
# Without what only tests and benchmarks need.
build_programs() { build_tree build -DCMAKE_BUILD_TYPE=Release -DGOBLIN_BENCH=OFF -- goblin-lab goblin-worker; }
build_address() { build_tree build-asan -DCMAKE_BUILD_TYPE=Release -DGOBLIN_SANITIZE=address -- "$@"; }
build_thread() { build_tree build-tsan -DCMAKE_BUILD_TYPE=Release -DGOBLIN_SANITIZE=thread -- "$@"; }
build_fuzzers() {
  build_tree build-fuzz -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ -DGOBLIN_FUZZ=ON -- all
}
