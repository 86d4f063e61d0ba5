#!/usr/bin/env bash
# Tries three nodes under a random fault every 20 s: loadtest/chaos.sh. Needs the release build, and what `make test-cluster` installs.
# Settings: MINUTES=30, PEOPLE=2000, SEED=, EVERY=20 (seconds), FAULTS="kill stop …" (all by default), BUILD=release, KEEP=1 (keeps the
# logs), OUT=FOLDER (keeps the report). Talks to 127.0.0.1 only, ends what it starts, exits 1 when a target is missed.
# How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.build/test-venv/bin/python
[ -x "$python" ] || { echo "chaos: the tests' Python packages are missing: run \`make test-python\`" >&2; exit 1; }
exec Tests/StoreTests/postgres.sh "$python" -B loadtest/chaos "$@"
