#!/usr/bin/env bash
# Checks what no compiler does: format, rooms, names, edges, citations and comments. Prints each mistake with its place.
set -uo pipefail
cd "$(dirname "$0")/../.."
code=0
"${SWIFT:-swift}" format lint --strict --parallel --recursive --configuration .swift-format Sources Tests || code=1
for check in layout modules citations prose; do python3 -B "Tests/Style/$check.py" || code=1; done
exit "$code"
