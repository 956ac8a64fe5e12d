# Configures and builds one tree per kind of build. Sourced by ./goblin.

# build_tree FOLDER [CMAKE OPTION …] -- [TARGET …]
build_tree() {
  local folder=$1 options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -gt 0 ] && shift
  targets=("$@")
  [ ${#targets[@]} -eq 0 ] && targets=(all)
  local linker=()
  command -v mold >/dev/null && linker=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold)
  cmake -S . -B "$folder" -G Ninja -Wno-dev "${linker[@]}" "${options[@]}" >"$folder.configure.log" 2>&1 || {
    cat "$folder.configure.log" >&2
    return 1
  }
  rm -f "$folder.configure.log"
  cmake --build "$folder" -j "$jobs" --target "${targets[@]}"
}

build_release() { build_tree build -DCMAKE_BUILD_TYPE=Release --; }
build_address() { build_tree build-asan -DCMAKE_BUILD_TYPE=Release -DGOBLIN_SANITIZE=address --; }
build_thread() { build_tree build-tsan -DCMAKE_BUILD_TYPE=Release -DGOBLIN_SANITIZE=thread --; }
build_fuzzers() {
  build_tree build-fuzz -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ -DGOBLIN_FUZZ=ON --
}
