#!/usr/bin/env bash
# Makes what a release consists of, in .build/release-files: the package, a bill of materials, notes and checksums.
#
# The commit has to have the tag vVERSION, and no file may differ from it; DRY=1 lets both pass.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=.build/release-files
version=$(sed -n 's/.*static let version = "\(.*\)"/\1/p' Sources/HubServer/Metrics/MetricsText+Process.swift)
if [ "${DRY:-}" != 1 ]; then
    [ -z "$(git status --porcelain)" ] || { echo "release: files differ from the commit: commit them first" >&2 && exit 1; }
    git tag --points-at HEAD | grep -qx "v$version" || {
        echo "release: the commit has no tag v$version: git tag -s v$version, or change BuildInfo.version" >&2 && exit 1
    }
fi
rm -rf "$out"
docs/deploy/debian/package.sh --out "$out" "$@"
package=$(ls "$out"/tandem_*.deb)
python3 -B docs/deploy/release/sbom.py "$package" .build/package/root/usr/bin/tandem "$(git rev-parse HEAD)" \
    "$(git log -1 --format=%ct)" >"$out/tandem_$version.spdx.json"

# The subjects since the release before; all of them for the first.
before=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true)
{
    printf '# Tandem %s\n\nUpgrading: docs/upgrading.md.\n\n' "$version"
    git log --reverse --format='- %s' ${before:+"$before..HEAD"}
} >"$out/notes.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
ls -l "$out"
