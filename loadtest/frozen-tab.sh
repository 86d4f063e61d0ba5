#!/usr/bin/env bash
# Tries a visible, a hidden and a frozen tab of a real browser: loadtest/frozen-tab.sh. About 80 seconds; needs python3 and Chromium alone.
# Settings: BUILD=release (or debug), EVENTS=100, PUSHER_JS=FILE (a browser build of pusher-js; without one a stand-in takes its place).
# Talks to 127.0.0.1 only, ends what it starts, exits 1 when a target is missed. How to read it: loadtest/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "frozen-tab: python3 is missing: run \`make test-deps\`" >&2; exit 1; }
command -v chromium >/dev/null || { echo "frozen-tab: skipped, because there is no Chromium here: apt-get install chromium"; exit 0; }
exec python3 -B loadtest/frozen-tab "$@"
