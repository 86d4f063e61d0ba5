#!/usr/bin/env bash
# Builds all tests with a sanitizer, in a build folder of its own, and runs them: sanitizers.sh address|thread [FILTER]
# Fails when a test fails, and when any sanitized process reported anything, child processes of the tests included.
set -euo pipefail
sanitizer=${1:?usage: sanitizers.sh address|thread [FILTER]}
filter=${2:-}
here="$(cd "$(dirname "$0")" && pwd)"
cd "$here/../.."
build="$PWD/.build/${sanitizer:0:1}san"
reports="$build/reports"
options=(--sanitize="$sanitizer" --scratch-path "$build")
mkdir -p "$build"
if [ "$sanitizer" = thread ]; then
    # Says what Swift's Mutex does; the compiler is the toolchain's own.
    "$(dirname "$(readlink -f "$(command -v swift)")")/clang" -Wall -Werror -O1 -fPIC -c "$here/SwiftMutex.c" -o "$build/SwiftMutex.o"
    options+=(-Xlinker "$build/SwiftMutex.o")
fi
swift build --build-tests "${options[@]}"

rm -rf "$reports"
mkdir -p "$reports"
# Every process writes what it finds into a file of its own, so that a child's report is not lost with its output. No search
# for leaks: Swift keeps pointers with tag bits in them, which the search does not follow, and so it reports what is in use.
export ASAN_OPTIONS="log_path=$reports/report:suppressions=$here/address.supp:detect_leaks=0:quarantine_size_mb=64"
export TSAN_OPTIONS="log_path=$reports/report:history_size=4"
# Factor for every limit that the tests wait up to.
export TANDEM_TEST_PATIENCE=6
code=0
if [ -n "$filter" ]; then
    swift test --skip-build --disable-xctest "${options[@]}" --filter "$filter" || code=$?
else
    Tests/stages.sh all "${options[@]}" || code=$?
fi
if compgen -G "$reports/*" >/dev/null; then
    cat "$reports"/*
    echo "the $sanitizer sanitizer reported what is above ($reports)"
    exit 1
fi
exit "$code"
