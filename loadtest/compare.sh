#!/usr/bin/env bash
# Puts a release build of the hub beside other servers under the same load: loadtest/compare.sh [--out FOLDER]. About fifteen minutes.
# Settings: SERVERS="tandem floor floor-join socketify nchan nats", LOADS="crowd few many nobody paced", TLS=0 (1: all of it through TLS),
# ROUNDS=7, SUBSCRIBERS=1000, CROWD=10000, SECONDS=2.5 (of each measurement), BYTES=128, ENVELOPE=0, SERVER_CORE=, CLIENT_CORES=.
# Talks to 127.0.0.1 only, ends what it starts, exits 1 when a target is missed.
# How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "compare: python3 is missing: run \`make compare\`" >&2; exit 1; }
# A wedged run ends by itself.
exec timeout --foreground --kill-after=30 "${COMPARE_SECONDS_MAX:-3600}" python3 -B loadtest/compare "$@"
