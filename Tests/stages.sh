#!/usr/bin/env bash
# Runs the tests that are built: stages.sh computing|all [OPTION OF swift test]…
#
# Two runs, because tests that compute for long keep others from their deadlines on a small machine. Each test is in one of them.
set -uo pipefail
stages=${1:?usage: stages.sh computing|all [OPTION OF swift test]…}
shift
cd "$(dirname "$0")/.."
# Where only these run somebody waits for them: random and simulated ones are shorter then.
if [ "$stages" = computing ]; then export TANDEM_TEST_SHORT=1; fi

# Tests with deadlines in real time: those with sockets, or with processes of their own. Suites, and files where suites differ.
real_time='^HubIntegrationTests\.|^GatewaySimulatorsTests\.|\.(CurlMultiTests|WebhookServiceTests|RelayTests)/'
real_time+='|^HubTransportTests\..*/(?!Unit)\w+\.swift:'
real_time+='|^HubPushTests\..*/(CredentialAcceptance|ErrorTable|Gateway|LaneCounters|LaneQuota|Outage|Router|Simulator|Wire)Tests\.swift:'
real_time+='|^LoadTestingTests\..*/(SecureLinks|Worker)Tests\.swift:'

printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
run() {
    "${SWIFT:-swift}" test --skip-build --disable-xctest "$@" 2>&1 | tee -a "$printed"
    return "${PIPESTATUS[0]}"
}
code=0
run "$@" --skip "$real_time" || code=$?
if [ "$stages" = all ]; then run "$@" --filter "$real_time" || code=$?; fi
# Once more at the end, where whoever sees only the last lines finds them.
if [ "$code" != 0 ]; then
    echo "Failed:"
    grep -aE '✘|↳' "$printed"
fi
exit "$code"
