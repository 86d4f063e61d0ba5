#!/usr/bin/env bash
# Checks what no compiler does: format, rooms, names, edges, citations and prose. Prints each mistake with its place.
set -uo pipefail
cd "$(dirname "$0")/../.."
code=0
if ! "${SWIFT:-swift}" format --version >/dev/null 2>&1; then echo "style: this Swift has no formatter: the format is not checked"; fi
# Texts that stand in one piece may be wider than the formatter likes, and it drops the space of `for unsafe`.
found=$("${SWIFT:-swift}" format lint --parallel --recursive --configuration .swift-format Sources Tests 2>&1 | grep '\.swift:' | grep -v '\[LineLength\]' |
    while IFS=: read -r file line rest; do
        sed -n "${line}p" "$file" 2>/dev/null | grep -q 'for unsafe ' || echo "$file:$line:$rest"
    done)
if [ -n "$found" ]; then
    echo "$found"
    code=1
fi
for check in layout modules citations; do python3 -B "Tests/Style/$check.py" || code=1; done
python3 -B Tests/Style/prose.py --gate || code=1
exit "$code"
