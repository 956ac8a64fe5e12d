# Builds and runs the tests. Sourced by ./goblin.

run_ctest() { ctest --test-dir "$1" --output-on-failure --no-tests=error -j "$jobs" "${@:2}"; }

# run_fuzzers COUNT: each target for COUNT inputs more than it starts with. What they find new is kept in build-fuzz/.
run_fuzzers() {
  local runs=$1 target name found reproducer seeds folder
  build-fuzz/bin/make_seeds build-fuzz/seeds
  for target in build-fuzz/bin/fuzz_*; do
    name=$(basename "$target")
    found=build-fuzz/corpus/$name
    reproducer=build-fuzz/$name.reproducer
    rm -f "$reproducer"
    mkdir -p "$found"
    seeds=()
    for folder in "tests/fuzz/corpus/$name" "build-fuzz/seeds/$name"; do [ -d "$folder" ] && seeds+=("$folder"); done
    echo "fuzzing $name for $runs inputs"
    "$target" -runs="$runs" -seed=1 -timeout=10 -rss_limit_mb=1024 -max_total_time=60 -exact_artifact_path="$reproducer" \
      "$found" "${seeds[@]}" >"build-fuzz/$name.log" 2>&1 || {
      tail -60 "build-fuzz/$name.log" >&2
      echo "goblin test: $name failed, the lines above say why (whole log: build-fuzz/$name.log)" >&2
      [ -e "$reproducer" ] && echo "to see it again: $target $reproducer" >&2
      return 1
    }
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
