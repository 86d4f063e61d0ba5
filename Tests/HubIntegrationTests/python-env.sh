#!/usr/bin/env bash
# Makes the Python environment of the integration tests in the folder DIR: python-env.sh DIR
# Returns at once when it is there, and this script and the list of packages beside it are still those that made it.
set -euo pipefail
folder=${1:?usage: python-env.sh DIR}
wanted="$(cd "$(dirname "$0")" && pwd)/requirements.txt"
mkdir -p "$(dirname "$folder")"

# `make test` and the tests themselves may come here at the same moment.
exec 9>"$folder.lock"
flock 9
if cat "$wanted" "$0" | cmp -s - "$folder/installed.txt"; then exit 0; fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
# Without what it asks for (gRPC, Firestore, Cloud Storage): its message encoder uses none of it.
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps firebase-admin==7.7.0
# Written last, so that an interrupted installation is done again.
cat "$wanted" "$0" > "$folder/installed.txt"
