#!/usr/bin/env bash
# Measures PostgreSQL as the store beside SQLite: loadtest/stores.sh speed|rot|sizes.
# Settings: ROUNDS=3, DEVICES=100000 (speed), SECONDS_EACH=600 (rot, twice), KEEP=1 (keeps the folder). Starts servers of its own on
# 127.0.0.1, ends what it starts, exits 1 when a target is missed. How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in python3 cc openssl psql; do
  command -v "$tool" >/dev/null || { echo "stores: $tool is missing: run \`make test-deps test-stores\`" >&2; exit 1; }
done
# A wedged run ends by itself.
exec timeout --kill-after=30 "${STORES_SECONDS_MAX:-3600}" Tests/StoreTests/postgres.sh python3 -B loadtest/stores "$@"
