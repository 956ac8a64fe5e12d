# Builds and runs the benchmarks. Sourced by ./goblin.

run_benches() {
  install_packages
  build_release >&2
  exec build/bin/goblin-bench "$@"
}
