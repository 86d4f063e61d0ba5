#!/usr/bin/env bash
# Tries "nobody missed, nobody told twice" on a release build: loadtest/one-surface.sh. About four minutes; needs python3 alone.
# Settings: SEED=, PARTICIPANTS=2000, EVENTS=100, RECIPIENTS=10000 (0: leaves that measurement out), KEEP=1 (keeps the logs).
# Talks to 127.0.0.1 only, ends what it starts, exits 1 when a target is missed. How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "one-surface: python3 is missing: run \`make test-deps\`" >&2; exit 1; }
exec python3 -B loadtest/one-surface "$@"
