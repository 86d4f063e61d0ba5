#!/usr/bin/env bash
# Makes the Python environment of the integration tests in the folder DIR: python-env.sh DIR
# Returns at once when it is there and its list of packages is still the one beside this script.
set -euo pipefail
folder=${1:?usage: python-env.sh DIR}
wanted="$(cd "$(dirname "$0")" && pwd)/requirements.txt"
mkdir -p "$(dirname "$folder")"

# `make test` and the tests themselves may come here at the same moment.
exec 9>"$folder.lock"
flock 9
if cmp -s "$wanted" "$folder/installed.txt"; then exit 0; fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
# Written last, so that an interrupted installation is done again.
cp "$wanted" "$folder/installed.txt"
