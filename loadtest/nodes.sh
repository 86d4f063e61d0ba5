#!/usr/bin/env bash
# Measures several nodes as one hub beside one node, in one run: loadtest/nodes.sh [deliver|publish|join|storm|sql]…
# Without arguments all of them.
# Settings: NODES=3, ROUNDS=5, CLIENTS=10000 (the storm's), RATE=50 (publishes a second to the subscribers), KEEP=1 (keeps the folder).
# Starts PostgreSQL, Redis and hubs on 127.0.0.1, ends what it starts, exits 1 when a target is missed. How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in python3 cc psql redis-server; do
  command -v "$tool" >/dev/null || { echo "nodes: $tool is missing: run \`make nodes\`" >&2; exit 1; }
done
# A wedged run ends by itself.
exec timeout --kill-after=30 "${NODES_SECONDS_MAX:-1800}" Tests/StoreTests/postgres.sh python3 -B loadtest/nodes "$@"
