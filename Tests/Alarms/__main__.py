"""Each alert of docs/grafana/alerts.yaml fires once, on what a hub prints at /metrics: python3 -B Tests/Alarms.

Needs promtool and Prometheus, Redis, and TANDEM_TEST_POSTGRES as Tests/StoreTests/postgres.sh sets it. Settings: BUILD=debug.

The faults are real, and so are the readings before and after each. Time is not: Prometheus' rule engine is given the readings as if
fifteen seconds had passed between two samples, so that a rule that waits for five minutes is judged at once.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.join(ROOT, *parts) for parts in (("loadtest",), ("loadtest", "one-surface"), ("Tests", "ClusterTests", "faults"))]

import cases
from board import try_board
from common.workspace import built, workspace
from metrics import alerts


def main():
    build = os.environ.get("BUILD") or "debug"
    binaries = {name: built(name, "test-alarms", build) for name in ("tandem", "tandem-gateways")}
    mistakes = []

    def expect(holds, text):
        print(f"  {'ok  ' if holds else 'FAIL'}  {text}", flush=True)
        if not holds:
            mistakes.append(text)

    with workspace() as (folder, programs):
        fired = set()
        for case in cases.CASES:
            world = cases.World(os.path.join(folder, case.__name__), programs, binaries)
            quiet, found, wanted = case(world)
            expect(quiet == [], f"{case.__name__}: nothing fires before{'' if quiet == [] else f': {quiet}'}")
            expect(set(wanted) <= set(found), f"{case.__name__}: {', '.join(wanted)} (firing: {', '.join(found) or 'nothing'})")
            fired |= set(wanted)
            world.end()
        expect(fired == set(alerts()), f"each of the {len(alerts())} alerts has a case")
        try_board(cases.World(os.path.join(folder, "board"), programs, binaries), expect)
    print(f"{len(mistakes)} failed")
    return 1 if mistakes else 0


sys.exit(main())
