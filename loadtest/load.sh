#!/usr/bin/env bash
# Starts a hub of its own (release build, free port, temporary folder), runs one scenario of tandem-loadtest against it, and ends it.
#   loadtest/load.sh [SCENARIO [OPTION ...]]        default: fanout, 1,000 subscribers, 20 publishes a second
# LOOPS=1 sets the hub's loops, HUB_CPUS=0 and LOAD_CPUS=1-2 pin hub and tester to cores (taskset).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$here/.build/release
scenario=${1:-fanout}
shift || true
folder=$(mktemp -d)
hub='' gateways=''
finish() {
  [ -z "$hub" ] || kill "$hub" 2>/dev/null || true
  [ -z "$gateways" ] || kill "$gateways" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
pinned() { # pinned CPUS COMMAND ...
  local cpus=$1
  shift
  if [ -n "$cpus" ]; then exec taskset -c "$cpus" "$@"; else exec "$@"; fi
}

await() { # await PID FILE TEXT WHAT
  for _ in $(seq 300); do
    if grep -q "$3" "$2" 2>/dev/null; then return; fi
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  echo "$4 did not start:" >&2
  cat "$2" >&2
  exit 1
}

# As many descriptors as there may be: hub and tester need one for each connection.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
extra=()
if [ "$scenario" = push ]; then
  "$bin/tandem-gateways" --data "$folder/gateways" >"$folder/gateways.out" 2>&1 &
  gateways=$!
  await "$gateways" "$folder/gateways.out" '^ready' "tandem-gateways"
  . "$folder/gateways/gateways.env"
  extra=(--gateways "$TANDEM_GATEWAYS_CONTROL")
fi
pinned "${HUB_CPUS:-}" "$bin/tandem" serve --port 0 --data "$folder/data" --channels "$here/channels" --loops "${LOOPS:-1}" \
  >"$folder/hub.out" 2>"$folder/hub.err" &
hub=$!
await "$hub" "$folder/hub.out" 'is ready at' "the hub"
port=$(sed -n 's/.*is ready at .*:\([0-9]*\).*/\1/p;q' "$folder/hub.out")
# In a shell of its own, so that this one is left to clean up.
(pinned "${LOAD_CPUS:-}" "$bin/tandem-loadtest" "$scenario" --url "ws://127.0.0.1:$port" --server-pid "$hub" "${extra[@]}" "$@")
