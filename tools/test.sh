# Builds and runs the tests and counts them. Sourced by ./goblin.

tests_passed=0
tests_failed=0
checks_skipped=()
fuzz_inputs=20000  # for each target, beyond those it starts with

# run_ctest TITLE FOLDER [CTEST OPTION …]: goes on after a failure, which the counts remember.
run_ctest() {
  local title=$1 folder=$2 report tests failed
  shift 2
  echo
  echo "== $title"
  report=$PWD/$folder/tests.xml
  rm -f "$report"
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --output-junit "$report" -j "$jobs" "$@" || true
  if [ -e "$report" ]; then
    tests=$(sed -n '1,/hostname/s/^[[:space:]]*tests="\([0-9]*\)".*/\1/p' "$report")
    failed=$(sed -n '1,/hostname/s/^[[:space:]]*failures="\([0-9]*\)".*/\1/p' "$report")
    tests_passed=$((tests_passed + tests - failed))
    tests_failed=$((tests_failed + failed))
  else
    tests_failed=$((tests_failed + 1))
  fi
  # QtTest's "SKIP   : class::check() reason": a test passes although a check of it didn't run.
  mapfile -t -O "${#checks_skipped[@]}" checks_skipped \
    < <(sed -n 's/^SKIP *: //p' "$folder/Testing/Temporary/LastTest.log" 2>/dev/null)
}

# fuzz_one TARGET: what it finds new is kept in build-fuzz/.
fuzz_one() {
  local target=$1 name found reproducer log folder seeds=()
  name=$(basename "$target")
  found=build-fuzz/corpus/$name
  reproducer=build-fuzz/$name.reproducer
  log=build-fuzz/$name.log
  rm -f "$reproducer"
  mkdir -p "$found"
  for folder in "tests/fuzz/corpus/$name" "build-fuzz/seeds/$name"; do [ -d "$folder" ] && seeds+=("$folder"); done
  echo "$name"
  "$target" -runs="$fuzz_inputs" -seed=1 -timeout=10 -rss_limit_mb=1024 -max_total_time=60 -exact_artifact_path="$reproducer" \
    "$found" "${seeds[@]}" >"$log" 2>&1 && return 0
  tail -60 "$log" >&2
  echo "goblin test: $name failed, the lines above say why (all of them: $log)" >&2
  [ -e "$reproducer" ] && echo "to see it again: $target $reproducer" >&2
  return 1
}

run_fuzzers() {
  local target
  echo
  echo "== fuzzers, $fuzz_inputs inputs each"
  build-fuzz/bin/make_seeds build-fuzz/seeds
  for target in build-fuzz/bin/fuzz_*; do
    if fuzz_one "$target"; then tests_passed=$((tests_passed + 1)); else tests_failed=$((tests_failed + 1)); fi
  done
}

run_tests() {
  local mode=${1:-}
  [ $# -le 1 ] || refuse "expected at most one option after test, found $#"
  case $mode in
    --fast)
      install_packages program test
      build_tree build -DCMAKE_BUILD_TYPE=Release -- tests_fast
      run_ctest 'fast tests' build -L '^fast$'
      ;;
    '' | --all)
      install_packages program test bench
      build_release all
      build_address tests_fast
      build_fuzzers
      if [ "$mode" = --all ]; then
        build_thread tests_lab
        run_ctest 'all tests' build
        run_ctest "the lab node's tests under ThreadSanitizer" build-tsan -L '^lab$'
      else
        run_ctest 'tests' build -LE '^long$'
      fi
      run_ctest 'fast tests under AddressSanitizer and UndefinedBehaviorSanitizer' build-asan -L '^fast$'
      run_fuzzers
      ;;
    *) refuse "expected --fast or --all after test, found '$mode'" ;;
  esac
  echo
  if [ "${#checks_skipped[@]}" -gt 0 ]; then
    echo "checks that did not run, and why:"
    printf '  %s\n' "${checks_skipped[@]}"
    echo
  fi
  echo "$tests_passed passed, $tests_failed failed, ${#checks_skipped[@]} checks skipped"
  [ "$tests_failed" -eq 0 ]
}
