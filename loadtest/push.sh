#!/usr/bin/env bash
# Measures what a push costs a release build beside a bare libcurl loop: loadtest/push.sh. About five minutes.
# Settings: DEVICES=100000, ROUNDS=5, PROVIDERS="fcm apns", REGISTERED=1000000 (0: leaves the lookups out), IN_FLIGHT=200 (the bare
# loop's), KEEP=1 (keeps the folder). Talks to 127.0.0.1 only, ends what it starts, exits 1 when a target is missed.
# How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in python3 cc openssl; do
  command -v "$tool" >/dev/null || { echo "push: $tool is missing: run \`make test-deps\`" >&2; exit 1; }
done
# A wedged run ends by itself.
exec timeout --kill-after=30 "${PUSH_SECONDS_MAX:-3600}" python3 -B loadtest/push "$@"
