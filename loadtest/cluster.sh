#!/usr/bin/env bash
# Runs three nodes as one hub on this machine, to be tried by hand: loadtest/cluster.sh
# Starts PostgreSQL, Redis, three hubs and a balancer on 127.0.0.1, prints the one address, and ends all of them on Ctrl-C, or when the
# program that started it is gone. NODES=3 and PORT=6001 are yours to set. Needs the release build of tandem.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v redis-server >/dev/null || { echo "cluster: redis-server is missing: run \`make cluster\`" >&2; exit 1; }
exec Tests/StoreTests/postgres.sh python3 -B loadtest/cluster
