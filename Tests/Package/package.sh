#!/usr/bin/env bash
# Builds the package, judges it, and tries it on a Debian 12 of its own: package.sh [OLDER.deb]
#
# Without an older package the same program gets a lower version. EXPOSURE_MAX bounds what systemd-analyze security finds.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=.build/deb
# Tried, not shipped.
export LEVEL=1
exposure_max=2.0
build=docs/deploy/debian/package.sh
rm -rf "$out"
"$build" --out "$out"
new=$(ls "$out"/tandem_*.deb)
old=${1:-}
if [ -z "$old" ]; then
    program=.build/package/release/tandem
    "$build" --out "$out/again" --binary "$program" >/dev/null
    cmp "$new" "$out/again/$(basename "$new")" && echo "ok    the package is the same, bit by bit, when it is made again"
    "$build" --out "$out/old" --binary "$program" --version "0.0.1~$(date +%s)" >/dev/null
    old=$(ls "$out"/old/tandem_*.deb)
fi
echo "lintian:"
lintian --allow-root --fail-on error "$new"
echo "systemd-analyze:"
systemd-analyze security --offline=true --threshold="$(python3 -c "print(round($exposure_max * 10))")" \
    docs/deploy/debian/tandem.service | tail -2
# The unit is judged as installed, in a mount namespace where it and the program are.
root=.build/package/root
unshare --mount bash -euc '
    for folder in usr/bin lib/systemd/system usr/share/man/man1; do
        mount -t overlay overlay -o "lowerdir=$1/$folder:/$folder" "/$folder"
    done
    systemd-analyze verify --man=yes tandem.service tandem.socket' verify "$PWD/$root" && echo "ok    systemd-analyze verify"
exec python3 -B Tests/Package "$new" "$old"
