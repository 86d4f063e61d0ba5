#!/usr/bin/env bash
# Builds the Debian package: package.sh [--version VERSION] [--binary FILE] [--out FOLDER]
#
# VERSION: that of Sources/HubServer where the commit has the tag vVERSION, otherwise VERSION~gitTIME.COMMIT, which sorts before it.
# FILE: an executable that is built already. FOLDER: .build/deb. LEVEL=1 in the environment compresses less, and in less time.
# The same commit, built with the same Swift in a folder of the same path, gives the same bytes: no time, no name and no order of the
# machine gets in. In another folder a few of Swift's run-time checks hold another length of their file's path.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
binary='' version='' out=.build/deb
while [ $# -gt 0 ]; do
    case $1 in
    --version) version=$2 ;;
    --binary) binary=$2 ;;
    --out) out=$2 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
    esac
    shift 2
done
umask 022
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
release=$(sed -n 's/.*static let version = "\(.*\)"/\1/p' Sources/HubServer/Metrics/MetricsText+Process.swift)
if [ -z "$version" ]; then
    version=$release
    if ! git tag --points-at HEAD | grep -qx "v$release"; then
        version="$release~git$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).${commit:0:7}"
    fi
fi
architecture=$(dpkg --print-architecture)

# Foundation's tables, the few of them that a hub reads.
work=$PWD/.build/package
mkdir -p "$work" "$out"
static=$(dirname "$(readlink -f "$(command -v "${SWIFT:-swift}")")")/../lib/swift_static/linux
symbol=$(python3 -B "$here/icu.py" "$static/lib_FoundationICU.a" "$work/icu.s" "$work/icu.dat")
(cd "$work" && as -o icu.o icu.s)

if [ -z "$binary" ]; then
    "${SWIFT:-swift}" build -c release --product tandem --static-swift-stdlib --scratch-path "$work" \
        -Xcc "-ffile-prefix-map=$PWD=." -Xlinker --build-id=none \
        -Xlinker "$work/icu.o" -Xlinker "--wrap=$symbol" -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now
    binary=$work/release/tandem
fi

root=$work/root
rm -rf "$root"
mkdir -p "$root/DEBIAN"
put() { install -D -m "$1" "$2" "$root/$3"; }

printf '%s\0' "$commit" >"$work/commit"
put 755 "$binary" usr/bin/tandem
# The compiler's hashes of its own input, which nobody reads any more, differ from build to build.
objcopy --dump-section .swift_modhash="$work/hashes" "$root/usr/bin/tandem"
head -c "$(stat -c %s "$work/hashes")" /dev/zero >"$work/nothing"
objcopy --update-section .swift_modhash="$work/nothing" --update-section tandem_commit="$work/commit" "$root/usr/bin/tandem"
strip --strip-all --remove-section=.comment --remove-section=.note "$root/usr/bin/tandem"

put 644 "$here/tandem.service" lib/systemd/system/tandem.service
put 644 "$here/tandem.socket" lib/systemd/system/tandem.socket
for file in channels/*.yaml; do put 644 "$file" "etc/tandem/$file"; done
mkdir -p "$root/usr/share/tandem"
ln -s /etc/tandem/channels "$root/usr/share/tandem/channels"
for file in docs/*.md docs/openapi.yaml docs/deploy/haproxy.cfg docs/deploy/nginx.conf docs/grafana/*; do
    put 644 "$file" "usr/share/doc/tandem/${file#docs/}"
done
put 644 "$here/copyright" usr/share/doc/tandem/copyright
put 644 "$here/lintian-overrides" usr/share/lintian/overrides/tandem

# What the program says of itself: its commands' pages and completions.
program=$root/usr/bin/tandem
mkdir -p "$root/usr/share/man/man1"
"$program" --experimental-dump-help |
    python3 -B "$here/manual.py" "$root/usr/share/man/man1" "$release" "$(date -d "@$SOURCE_DATE_EPOCH" +%F)"
gzip -9n "$root"/usr/share/man/man1/*.1
complete() { mkdir -p "$root/$(dirname "$2")" && "$program" --generate-completion-script "$1" | sed '1{/^#!/d}' >"$root/$2"; }
complete bash usr/share/bash-completion/completions/tandem
complete zsh usr/share/zsh/vendor-completions/_tandem
complete fish usr/share/fish/vendor_completions.d/tandem.fish

maintainer='Tandem maintainers <maintainers@tandem.invalid>'
{
    printf 'tandem (%s) unstable; urgency=medium\n\n' "$version"
    git log -n 30 --format='  * %s' | fold -s -w 76 | sed 's/^\([^ ]\)/    \1/; s/ *$//'
    printf '\n -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$root/usr/share/doc/tandem/changelog.gz"

# The libraries that the program loads; the plug-in of libwebsockets is one that it names at run time.
mkdir -p "$work/shlibs/debian"
printf 'Source: tandem\n\nPackage: tandem\nArchitecture: %s\n' "$architecture" >"$work/shlibs/debian/control"
libraries=$(cd "$work/shlibs" && dpkg-shlibdeps -O -e"$program" | sed -n 's/^shlibs:Depends=//p')
cat >"$root/DEBIAN/control" <<CONTROL
Package: tandem
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f1)
Depends: adduser, ca-certificates, init-system-helpers (>= 1.54), libwebsockets-evlib-uv, $libraries
Section: net
Priority: optional
Description: real-time hub that speaks Pusher's protocol and sends pushes
 A backend publishes an event once. Each participant gets it on one surface:
 over the WebSocket while the app is open, otherwise as a notification through
 FCM or APNs. Clients and backends of Pusher's libraries work unchanged.
 .
 The hub keeps its store in SQLite. Several hubs work as one with PostgreSQL
 and Redis.
CONTROL
for script in postinst prerm postrm; do put 755 "$here/$script" "DEBIAN/$script"; done
(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root"/DEBIAN/{control,conffiles,md5sums}

find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
package=$out/tandem_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z"${LEVEL:-6}" --threads-max=1 --build "$root" "$package" >/dev/null
echo "$package: $(stat -c %s "$package") bytes; $(sed -n 's/^Installed-Size: //p' "$root/DEBIAN/control") KiB installed, of which the" \
    "program $(stat -c %s "$program") bytes"
