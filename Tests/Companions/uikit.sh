#!/usr/bin/env bash
# Compiles the Swift companion with a stub of UIKit, which there is on Apple's systems alone. Breaks if the part for UIKit does not fit it.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rules="-swift-version 6 -enable-upcoming-feature ExistentialAny -enable-upcoming-feature MemberImportVisibility"
rules+=" -enable-upcoming-feature InternalImportsByDefault -strict-memory-safety -warnings-as-errors"
swiftc -parse-as-library -swift-version 6 -emit-module -module-name UIKit -emit-module-path "$folder/UIKit.swiftmodule" Tests/Companions/stubs/UIKit.swift
# shellcheck disable=SC2086
swiftc $rules -parse-as-library -emit-module -module-name TandemClient -emit-module-path "$folder/TandemClient.swiftmodule" -I "$folder" \
    Sources/TandemClient/*.swift
cat > "$folder/app.swift" <<'APP'
import TandemClient

@MainActor func leave(_ companion: TandemCompanion) { companion.enterBackground() }
APP
swiftc -swift-version 6 -warnings-as-errors -parse-as-library -typecheck -I "$folder" "$folder/app.swift"
echo "the companion's part for UIKit compiles"
