#!/usr/bin/env bash
# A guided tour on this machine: a lab node and two contributors compute, verify and check two products. `./goblin demo`.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
repository=$PWD
export PATH=$repository/build/bin:$PATH
folder=$(mktemp -d "${TMPDIR:-/tmp}/goblin-demo.XXXXXX")
export GOBLIN_LAB_DIR=$folder/lab
started=()  # process ids, in the order of their start

# Contributors first, so that they can hand back what they hold.
stop_started() {
  local i pid tries
  for ((i = ${#started[@]} - 1; i >= 0; --i)); do
    pid=${started[i]}
    kill -TERM "$pid" 2>/dev/null || continue
    for ((tries = 0; tries < 150; ++tries)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  started=()
}
leave() {
  local status=$?
  trap - EXIT
  trap '' INT TERM HUP  # a second Ctrl-C must not leave anything running
  stop_started
  rm -rf --one-file-system "$folder"
  exit "$status"
}
trap leave EXIT
trap 'echo; echo "demo: interrupted, stopping what it started"; exit 130' INT
trap 'exit 143' TERM HUP

# fail MESSAGE [LOG]
fail() {
  echo "demo: $1" >&2
  [ $# -gt 1 ] && [ -s "$2" ] && { echo "the last lines of its log:" >&2; tail -20 "$2" >&2; }
  exit 1
}

bold=; plain=
[ -t 1 ] && { bold=$'\e[1m'; plain=$'\e[0m'; }
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# typed COMMAND …: what a person would type. Paths are shown as they would be from inside the demo's folder.
typed() {
  local text=$*
  printf '$ %s\n' "${text//"$folder/"/}"
}
# run COMMAND …: shows it and runs it.
run() {
  typed "$*"
  "$@"
}

# wait_until SECONDS PID LOG WHAT COMMAND …: until the command succeeds; fails when the process ends meanwhile.
wait_until() {
  local seconds=$1 pid=$2 log=$3 what=$4 tries
  shift 4
  for ((tries = 0; tries < seconds * 5; ++tries)); do
    "$@" && return 0
    kill -0 "$pid" 2>/dev/null || fail "expected $what, found that the program ended" "$log"
    sleep 0.2
  done
  fail "expected $what within $seconds s, found nothing" "$log"
}

contributors_seen() {
  [ "$(goblin-lab --json node list 2>/dev/null | python3 -c 'import json, sys
print(sum(node["seen_s"] is not None for node in json.load(sys.stdin)))' 2>/dev/null)" = "$1" ]
}

# join NUMBER NAME
join() {
  local link log=$folder/$2.log
  typed "goblin-lab invite --host 127.0.0.1"
  link=$(goblin-lab invite --host 127.0.0.1) || fail 'expected an invitation, found none' "$folder/lab.log"
  echo "$link"
  typed "goblin-worker --dir $2 --name $2 --cpu-threads $threads --memory 1GiB --join '$link'"
  (umask 077 && echo "$link" >"$folder/$2.link")
  goblin-worker --dir "$folder/$2" --name "$2" --cpu-threads "$threads" --memory 1GiB --log-level warning \
    --join-file "$folder/$2.link" >"$log" 2>&1 &
  started+=($!)
  wait_until 120 "${started[-1]}" "$log" "$2 to join the lab" contributors_seen "$1"
}

# check A B C: against NumPy's product of the same matrices in f64.
check() {
  typed "python3 -c 'import numpy …'   # NumPy computes the same product in f64, on its own"
  python3 tools/check_product.py "$1" "$2" "$3"
}

for program in goblin-lab goblin-worker python3; do
  command -v "$program" >/dev/null || fail "expected $program, found none; start the demo with ./goblin demo"
done
threads=$((($(nproc) + 1) / 2))

cat <<TEXT
${bold}GPU Goblin, a guided tour${plain}
A researcher's lab node and two contributors, all on this machine, compute two matrix products.
Each line that starts with \$ is what a person would type. Everything lives in $folder and is removed at the end.
Stop it at any moment with Ctrl-C.
TEXT

step '1. A lab: keys, certificate, database, settings in one folder.'
typed "goblin-lab init --name 'the demo lab'"
goblin-lab init --name 'the demo lab' >"$folder/init.txt"
head -1 "$folder/init.txt"

step '2. Its lab node: the small service that hands out tasks and verifies results.'
typed 'goblin-lab serve --listen 127.0.0.1:0'
goblin-lab serve --listen 127.0.0.1:0 >"$folder/serve.txt" 2>"$folder/lab.log" &
started+=($!)
wait_until 60 "${started[-1]}" "$folder/lab.log" 'the lab node to listen' test -s "$folder/serve.txt"
cat "$folder/serve.txt"

step '3. Two volunteers join, each with an invitation of its own. A link holds the address, the key of the lab and a token.'
join 1 laptop
join 2 desktop
run goblin-lab node list

step '4. The data: 1797 handwritten digits of 64 pixels each. Which look alike? Their Gram matrix says: images · imagesᵀ.'
typed "python3 -c 'import numpy …'   # images.npy and its transpose"
python3 - "$folder" <<'PYTHON'
import sys
import numpy
images = numpy.load('resources/examples/digits_images_f32.npy').reshape(1797, 64)
numpy.save(sys.argv[1] + '/images.npy', images)
numpy.save(sys.argv[1] + '/images_turned.npy', numpy.ascontiguousarray(images.T))
PYTHON

step '5. The product. Both volunteers compute every task; equal digests settle it, the lab recomputes what they dispute.'
run goblin-lab product "$folder/images.npy" "$folder/images_turned.npy" -o "$folder/gram.npy"
check "$folder/images.npy" "$folder/images_turned.npy" "$folder/gram.npy"

step '6. A larger one, 4096×4096×4096: each task goes to one volunteer, and the lab checks it at about 1 % of its cost.'
run tools/make_matrix.py --seed 1 4096 4096 "$folder/a.npy"
run tools/make_matrix.py --seed 2 4096 4096 "$folder/b.npy"
run goblin-lab product "$folder/a.npy" "$folder/b.npy" -o "$folder/c.npy" --verify product
check "$folder/a.npy" "$folder/b.npy" "$folder/c.npy"

step '7. What the lab remembers.'
run goblin-lab job list
run goblin-lab job logs 1 --most 8
run goblin-lab node list

step '8. The end: contributors hand back what they hold, then the lab node stops. Ctrl-C in their terminals does the same.'
typed "kill ${started[*]}"
stop_started
echo 'Both products were computed, verified and checked; nothing is left running. README.md says how to do this across real machines.'
