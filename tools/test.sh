# Builds and runs the tests. Sourced by ./goblin.

run_ctest() { ctest --test-dir "$1" --output-on-failure --no-tests=error -j "$jobs" "${@:2}"; }

run_fuzzers() {
  local runs=$1 target name corpus
  for target in build-fuzz/bin/fuzz_*; do
    name=$(basename "$target")
    corpus=build-fuzz/corpus/$name
    mkdir -p "$corpus"
    echo "fuzzing $name for $runs inputs"
    "$target" -runs="$runs" -seed=1 -max_total_time=60 -verbosity=0 "$corpus" $([ -d "tests/fuzz/corpus/$name" ] && echo "tests/fuzz/corpus/$name")
  done
}

run_tests() {
  local mode=${1:-default}
  case $mode in default | --fast | --all) ;; *) echo "goblin test: expected --fast or --all, found '$mode'" >&2; return 2 ;; esac
  install_packages
  build_release
  if [ "$mode" = --fast ]; then
    run_ctest build -L fast
    return
  fi
  build_address
  build_fuzzers
  run_ctest build $([ "$mode" = --all ] || echo -LE long)
  run_ctest build-asan -L fast
  run_fuzzers 20000
  if [ "$mode" = --all ]; then
    build_thread
    run_ctest build-tsan -L lab
  fi
  echo "goblin test: all passed"
}
