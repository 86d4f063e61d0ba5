#!/usr/bin/env bash
# Measures a release build of the hub: `loadtest/bench/bench.sh [counted | instructions|rooms|publish|decided|writes|memory|relief|…] [--profile N]`.
# Needs python3, valgrind, strace, strip and pkg-config. Talks to 127.0.0.1 only, and ends what it starts.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in python3 valgrind vgdb strace strip pkg-config; do
  command -v "$tool" >/dev/null || { echo "bench: $tool is missing: run \`make bench-deps\`" >&2; exit 1; }
done
# A wedged run ends by itself; the whole takes a few minutes.
exec timeout --kill-after=30 "${BENCH_SECONDS_MAX:-1800}" python3 -B loadtest/bench "$@"
