#!/usr/bin/env bash
# A long run at half load against a hub of its own: loadtest/soak.sh [FOLDER]. FOLDER gets fanout.json, churn.json, report.html, table.txt.
# 1,000 subscribers of one channel are sent RATE events a second, and beside them ARRIVALS clients a second connect, subscribe to a private
# channel, stay two seconds and go. Settings: SECONDS_LONG=3600, RATE=50, ARRIVALS=20, CORE= (pins hub and clients to one core).
# "Half load": twice this RATE is what one core carries for hub and clients together. Talks to 127.0.0.1 only and ends what it started.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$here/.build/release
out=${1:-$here/.build/soak}
seconds=${SECONDS_LONG:-3600}
for tool in tandem tandem-loadtest; do
  [ -x "$bin/$tool" ] || { echo "soak: $bin/$tool is missing: run \`make build\` and \`swift build -c release --product tandem-loadtest\`" >&2; exit 1; }
done
folder=$(mktemp -d)
hub='' churn=''
finish() {
  [ -z "$churn" ] || kill "$churn" 2>/dev/null || true
  [ -z "$hub" ] || kill "$hub" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
if [ -n "${CORE:-}" ]; then pin=(taskset -c "$CORE"); else pin=(); fi

"${pin[@]}" "$bin/tandem" serve --port 0 --data "$folder/data" --channels "$here/channels" --loops 1 >"$folder/hub.out" 2>"$folder/hub.err" &
hub=$!
for _ in $(seq 300); do
  grep -q 'is ready at' "$folder/hub.out" && break
  kill -0 "$hub" 2>/dev/null || { cat "$folder/hub.err" >&2; exit 1; }
  sleep 0.1
done
url=ws://127.0.0.1:$(sed -n 's/.*is ready at .*:\([0-9]*\).*/\1/p;q' "$folder/hub.out")
mkdir -p "$out"
"${pin[@]}" "$bin/tandem-loadtest" churn --url "$url" --connections 100 --rate "${ARRIVALS:-20}" --seconds "$seconds" \
  --json "$out/churn.json" >"$folder/churn.out" 2>&1 &
churn=$!
"${pin[@]}" "$bin/tandem-loadtest" fanout --url "$url" --connections 1000 --rate "${RATE:-50}" --seconds "$seconds" --server-pid "$hub" \
  --json "$out/fanout.json"
wait "$churn" || { cat "$folder/churn.out" >&2; exit 1; }
churn=''
"$bin/tandem-loadtest" report "$out/fanout.json" "$out/churn.json" --html "$out/report.html" >"$out/table.txt"
echo "written to $out"
